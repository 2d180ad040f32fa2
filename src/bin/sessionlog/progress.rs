//! How far a long command is.
//!
//! What always holds: nothing is shown in the first second, and nothing at all unless standard error is a
//! terminal. A thread draws, so that one long piece of work moves as well.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossbeam_channel::{Receiver, RecvTimeoutError, Sender, bounded};
use indicatif::{HumanFloatCount, ProgressBar, ProgressState, ProgressStyle};

use crate::output::on_terminal;

const QUIET: Duration = Duration::from_secs(1);
const REDRAW: Duration = Duration::from_millis(100);

const COUNTED: &str = "{spinner} {wide_bar} {pos}/{len} {msg}";
const ENDLESS: &str = "{spinner} {elapsed} {msg}";
const BYTES: &str =
    "{spinner} {wide_bar} {binary_bytes}/{binary_total_bytes} {msg}, {binary_bytes_per_sec}, {eta} left";
const EVENTS: &str = "{spinner} {wide_bar} {human_pos}/{human_len} {msg}, {rate}, {eta} left";

/// What is drawn.
struct Shown {
    what: &'static str,
    total: Option<u64>,
    template: &'static str,
}

/// A count of things done, maybe out of a number of things to do.
pub(crate) struct Progress {
    done: Arc<AtomicU64>,
    drawer: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Things that are counted; `what` says what is going on.
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Self {
        Self::start(Shown { what, total, template: if total.is_some() { COUNTED } else { ENDLESS } })
    }

    /// Events out of a total, with the rate and the remaining time.
    pub(crate) fn events(what: &'static str, total: u64) -> Self {
        Self::start(Shown { what, total: Some(total), template: EVENTS })
    }

    /// Bytes out of a total, with the rate and the remaining time.
    pub(crate) fn bytes(what: &'static str, total: u64) -> Self {
        Self::start(Shown { what, total: Some(total), template: BYTES })
    }

    fn start(shown: Shown) -> Self {
        let done = Arc::new(AtomicU64::new(0));
        let drawer = on_terminal().then(|| drawer(shown, Arc::clone(&done))).flatten();
        Self { done, drawer }
    }

    /// So many more are done.
    pub(crate) fn add(&self, count: u64) {
        self.done.fetch_add(count, Ordering::Relaxed);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        let Some((stop, thread)) = self.drawer.take() else { return };
        drop(stop);
        // It ends at once; what it may have panicked about concerns nobody.
        let _ = thread.join();
    }
}

/// Without a thread there is no progress to see, and that is all.
fn drawer(shown: Shown, done: Arc<AtomicU64>) -> Option<(Sender<()>, JoinHandle<()>)> {
    let (stop, stopped) = bounded(0);
    let draw = move || draw(&shown, &done, &stopped);
    let thread = thread::Builder::new().name("progress".to_owned()).spawn(draw).ok()?;
    Some((stop, thread))
}

fn draw(shown: &Shown, done: &AtomicU64, stopped: &Receiver<()>) {
    if stopped.recv_timeout(QUIET) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    // The rate counts the quiet second as well.
    let bar = bar(shown).with_elapsed(QUIET);
    loop {
        bar.set_position(done.load(Ordering::Relaxed));
        bar.tick();
        if stopped.recv_timeout(REDRAW) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    bar.finish_and_clear();
}

fn bar(shown: &Shown) -> ProgressBar {
    let bar = shown.total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    if let Ok(style) = ProgressStyle::with_template(shown.template) {
        let rate = |state: &ProgressState, out: &mut dyn Write| {
            let _ = write!(out, "{}/s", HumanFloatCount(state.per_sec().round()));
        };
        bar.set_style(style.with_key("rate", rate));
    }
    bar.with_message(shown.what)
}
