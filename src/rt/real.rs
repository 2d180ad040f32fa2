//! The runtime of the operating system.
//!
//! Waits are futex words, so a waiter costs no allocation and a wake-up without waiters one cheap call.

use std::sync::atomic::AtomicU32;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::real_task::RealTask;
use super::{Runtime, Task, TaskHandle};
use crate::Result;

/// Threads, clock and randomness of the operating system.
#[derive(Debug, Clone)]
pub struct RealRuntime {
    started: Instant,
}

impl RealRuntime {
    /// The runtime; [`monotonic`](Runtime::monotonic) counts from here.
    #[must_use]
    pub fn new() -> Self {
        Self { started: Instant::now() }
    }
}

impl Default for RealRuntime {
    fn default() -> Self {
        Self::new()
    }
}

impl Runtime for RealRuntime {
    fn unix_millis(&self) -> i64 {
        let now = SystemTime::now();
        let millis = |span: Duration| i64::try_from(span.as_millis()).unwrap_or(i64::MAX);
        match now.duration_since(UNIX_EPOCH) {
            Ok(since) => millis(since),
            Err(before) => -millis(before.duration()),
        }
    }

    fn monotonic(&self) -> Duration {
        self.started.elapsed()
    }

    fn fill_random(&self, buf: &mut [u8]) {
        // Of a version 4 id the first six bytes are random throughout; version and variant come behind them.
        for piece in buf.chunks_mut(6) {
            let id = uuid::Uuid::new_v4().into_bytes();
            for (to, from) in piece.iter_mut().zip(id) {
                *to = from;
            }
        }
    }

    fn process_id(&self) -> u32 {
        std::process::id()
    }

    fn host_name(&self) -> String {
        let name = nix::unistd::gethostname().ok().and_then(|name| name.into_string().ok());
        name.unwrap_or_else(|| "unknown".to_owned())
    }

    fn yield_now(&self) {
        thread::yield_now();
    }

    fn wait(&self, word: &AtomicU32, seen: u32) {
        atomic_wait::wait(word, seen);
    }

    fn wake_all(&self, word: &AtomicU32) {
        atomic_wait::wake_all(word);
    }

    fn wake_one(&self, word: &AtomicU32) {
        atomic_wait::wake_one(word);
    }

    fn spawn(&self, name: &'static str, task: Box<dyn Task>) -> Result<TaskHandle> {
        RealTask::start(name, task)
    }
}
