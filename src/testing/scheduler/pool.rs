//! Threads that are used again: a run needs some ten, and starting one costs as much as many switches.

use std::sync::mpsc::{Sender, channel};
use std::thread;

use parking_lot::Mutex;

pub(super) type Job = Box<dyn FnOnce() + Send>;

/// Threads that wait for a job. One that never comes to its end is simply not among them again.
static IDLE: Mutex<Vec<Sender<Job>>> = Mutex::new(Vec::new());

/// Runs `job` on some thread, soon.
pub(super) fn run(job: Job) {
    let idle = IDLE.lock().pop();
    let refused = match idle {
        Some(idle) => idle.send(job).err().map(|back| back.0),
        None => Some(job),
    };
    let Some(job) = refused else { return };
    let (sender, jobs) = channel::<Job>();
    // A test rig without threads cannot go on.
    let started = thread::Builder::new().name("scheduled".to_owned()).spawn(move || {
        job();
        loop {
            IDLE.lock().push(sender.clone());
            match jobs.recv() {
                Ok(job) => job(),
                Err(_) => return,
            }
        }
    });
    started.map(drop).unwrap_or_else(|error| unreachable!("no thread for the simulation: {error}"));
}
