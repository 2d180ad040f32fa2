//! How far a long command is.
//!
//! What always holds: nothing is shown in the first second, and nothing at all unless standard error is a
//! terminal.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::output::on_terminal;

const QUIET: Duration = Duration::from_secs(1);

/// A count of things done out of things to do.
pub(crate) struct Progress {
    what: &'static str,
    total: Option<u64>,
    done: u64,
    started: Instant,
    wanted: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// `what` is the plural of what is counted.
    pub(crate) fn new(what: &'static str, total: Option<u64>) -> Self {
        Self { what, total, done: 0, started: Instant::now(), wanted: on_terminal(), bar: None }
    }

    /// So many more are done.
    pub(crate) fn add(&mut self, count: u64) {
        self.done = self.done.saturating_add(count);
        if !self.wanted || self.started.elapsed() < QUIET {
            return;
        }
        let done = self.done;
        self.bar.get_or_insert_with(|| bar(self.what, self.total)).set_position(done);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

fn bar(what: &'static str, total: Option<u64>) -> ProgressBar {
    let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
    let template = if total.is_some() { "{wide_bar} {pos}/{len} {msg}" } else { "{spinner} {pos} {msg}" };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style);
    }
    bar.with_message(what)
}
