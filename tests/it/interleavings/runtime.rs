//! A runtime whose threads are chosen by shuttle: who goes on is decided at every wait, wake-up, disk call and point.
//!
//! Time stands still but for yields, so that nothing is saved by a timeout: a wake-up that is lost stays lost, and shuttle
//! says that everybody sleeps.

use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sessionlog::rt::{Runtime, Step, Task, TaskControl, TaskHandle};
use sessionlog::testing::Random;
use shuttle::thread::{self, Thread};

/// A thread that sleeps on a word, by the word's place.
struct Sleeper {
    word: usize,
    number: u64,
    thread: Thread,
}

#[derive(Default)]
struct Sleepers {
    asleep: Vec<Sleeper>,
    woken: Vec<Thread>,
    slept: u64,
}

/// See the module.
#[derive(Clone, Default)]
pub(super) struct Chosen {
    sleepers: Arc<Mutex<Sleepers>>,
    nanos: Arc<AtomicU64>,
}

impl std::fmt::Debug for Chosen {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Chosen")
    }
}

thread_local! {
    /// All threads of a run are one of the operating system's.
    static ENTERED: RefCell<Option<Chosen>> = const { RefCell::new(None) };
}

fn place(word: &AtomicU32) -> usize {
    std::ptr::from_ref(word) as usize
}

impl Chosen {
    fn wake(&self, word: &AtomicU32, most: usize) {
        let mut sleepers = self.sleepers.lock().unwrap();
        for _ in 0..most {
            let Some(at) = sleepers.asleep.iter().position(|one| one.word == place(word)) else { break };
            let thread = sleepers.asleep.remove(at).thread;
            sleepers.woken.push(thread);
        }
    }

    /// Lets others run, those first that were woken. A wake-up itself lets nobody run: it may come under a session's lock,
    /// or from a thread that unwinds.
    pub(super) fn step(&self) {
        let woken = std::mem::take(&mut self.sleepers.lock().unwrap().woken);
        woken.into_iter().for_each(|thread| thread.unpark());
        thread::yield_now();
    }

    /// Takes over the points of this run.
    pub(super) fn enter(&self) {
        ENTERED.with(|entered| *entered.borrow_mut() = Some(self.clone()));
    }

    /// What happens at a point.
    pub(super) fn point() {
        let entered = ENTERED.with(|entered| entered.borrow().clone());
        entered.inspect(Self::step);
    }

    fn sleeps(&self, number: u64) -> bool {
        self.sleepers.lock().unwrap().asleep.iter().any(|one| one.number == number)
    }
}

impl Runtime for Chosen {
    fn unix_millis(&self) -> i64 {
        1_700_000_000_000
    }

    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.nanos.load(Ordering::SeqCst))
    }

    fn fill_random(&self, buf: &mut [u8]) {
        Random::new(7).fill(buf);
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn host_name(&self) -> String {
        "chosen".into()
    }

    fn yield_now(&self) {
        self.nanos.fetch_add(10_000, Ordering::SeqCst);
        self.step();
    }

    fn wait(&self, word: &AtomicU32, seen: u32) {
        self.step();
        let number = {
            let mut sleepers = self.sleepers.lock().unwrap();
            if word.load(Ordering::SeqCst) != seen {
                return;
            }
            sleepers.slept += 1;
            let number = sleepers.slept;
            sleepers.asleep.push(Sleeper { word: place(word), number, thread: thread::current() });
            number
        };
        while self.sleeps(number) {
            thread::park();
        }
    }

    fn wake_all(&self, word: &AtomicU32) {
        self.wake(word, usize::MAX);
    }

    fn wake_one(&self, word: &AtomicU32) {
        self.wake(word, 1);
    }

    fn spawn(&self, _: &'static str, mut task: Box<dyn Task>) -> sessionlog::Result<TaskHandle> {
        let bell =
            Arc::new(Bell { runtime: self.clone(), rings: AtomicU32::new(0), done: AtomicBool::new(false) });
        let its = Arc::clone(&bell);
        thread::spawn(move || {
            loop {
                let seen = its.rings.load(Ordering::SeqCst);
                match task.step() {
                    Step::Again => its.runtime.step(),
                    Step::Sleep(_) => its.runtime.wait(&its.rings, seen),
                    Step::Done => break,
                }
            }
            drop(task);
            its.done.store(true, Ordering::SeqCst);
            its.ring();
            its.runtime.step();
        });
        Ok(TaskHandle::new(bell))
    }
}

struct Bell {
    runtime: Chosen,
    rings: AtomicU32,
    done: AtomicBool,
}

impl std::fmt::Debug for Bell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Bell")
    }
}

impl TaskControl for Bell {
    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.runtime.wake_all(&self.rings);
    }

    fn is_finished(&self) -> bool {
        self.done.load(Ordering::SeqCst)
    }

    fn join(&self) -> sessionlog::Result<()> {
        loop {
            let seen = self.rings.load(Ordering::SeqCst);
            if self.is_finished() {
                return Ok(());
            }
            self.runtime.wait(&self.rings, seen);
        }
    }
}
