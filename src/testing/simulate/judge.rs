//! What a crash left is opened and compared with the model; at some rate the power goes again while it is opened.
//!
//! Without damage: everything acknowledged is there, the rest is a clean prefix, batches whole, nothing reported lost
//! (G1, G2). With damage: nothing wrong is handed out, and what is lost is told (G3).

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::testing::model::Deletion;
use crate::testing::oracle::{Sight, check, glance, look, settle};
use crate::testing::{Model, Random, SimDisk};
use crate::{CreateOptions, SessionStore};

use super::history::{History, messages};
use super::options::{options, seeded};
use super::script::Script;
use super::tally::Tally;

type Verdict = std::result::Result<(), String>;

/// See the module.
pub(super) struct Judge<'a> {
    pub(super) script: &'a Script,
    pub(super) model: &'a Model,
    /// Losses are to be told, and no more than that.
    pub(super) damaged: bool,
    /// The damage may have taken the last commit and left no trace of it.
    pub(super) silent: bool,
    pub(super) tally: &'a mut Tally,
}

impl Judge<'_> {
    /// The verdict over `disk`, which is used up; a panic is one too.
    pub(super) fn over(&mut self, disk: &SimDisk, choice: u64) -> Verdict {
        disk.set_traced(false);
        match catch_unwind(AssertUnwindSafe(|| self.judge(disk, choice, 0))) {
            Ok(verdict) => verdict,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no text");
                Err(format!("a panic while a crashed store was opened: {text}"))
            }
        }
    }

    fn judge(&mut self, disk: &SimDisk, choice: u64, depth: u64) -> Verdict {
        let mut random = Random::new(choice);
        self.tally.crashes += 1;
        self.tally.again += u64::from(depth > 0);
        self.tally.damaged += u64::from(self.damaged);
        if random.chance(1, 2) {
            disk.set_free_space(None);
        }
        if depth < 2 && random.chance(1, 8) {
            self.again(&disk.snapshot(), &mut random, depth)?;
        }
        if random.chance(1, 6) {
            self.read_only(disk, choice)?;
        }
        let mut opened = self.open(disk, choice);
        // Each crash takes a segment, also where no space is left for another one.
        if self.script.space > 0 && matches!(&opened, Err(error) if error.is_full()) {
            disk.set_free_space(None);
            opened = self.open(disk, choice);
        }
        let store = match opened {
            Ok(store) => store,
            Err(error) if self.damaged && error.is_corruption() => return Ok(()),
            Err(error) => return Err(format!("it does not open: {error:?}")),
        };
        kept_aside(disk, &store)?;
        if self.damaged {
            self.with_damage(&store, &mut random, depth)?;
        } else {
            let complaints = check(&store, self.model);
            if !complaints.0.is_empty() {
                return Err(format!("{:?}; report {:?}", complaints.0, store.recovery()));
            }
        }
        if random.chance(1, 6) {
            self.go_on(disk, store, choice, &mut random)?;
        }
        Ok(())
    }

    fn open(&self, disk: &SimDisk, seed: u64) -> crate::Result<SessionStore> {
        options(self.script, disk, seeded(seed)).open("")
    }

    /// The power goes at some calls of the recovery.
    fn again(&mut self, disk: &SimDisk, random: &mut Random, depth: u64) -> Verdict {
        let kept: Arc<Mutex<Vec<SimDisk>>> = Arc::default();
        let list = Arc::clone(&kept);
        let mut choices = Random::new(random.next_u64());
        disk.on_call(move |_, op, disk| {
            if (op.is_change() || op.is_sync()) && choices.chance(1, 6) {
                list.lock().push(disk.crash(choices.next_u64()));
            }
        });
        let opened = self.open(disk, random.next_u64());
        disk.clear_on_call();
        drop(opened);
        let mut kept = std::mem::take(&mut *kept.lock());
        while kept.len() > 2 {
            kept.swap_remove(random.index(kept.len()));
        }
        for crashed in kept {
            crashed.set_traced(false);
            let choice = random.next_u64();
            self.judge(&crashed, choice, depth + 1)
                .map_err(|why| format!("cut again in recovery {}: {why}", depth + 1))?;
        }
        Ok(())
    }

    fn read_only(&self, disk: &SimDisk, seed: u64) -> Verdict {
        let store = match options(self.script, disk, seeded(seed)).open_read_only("") {
            Ok(store) => store,
            Err(error) if self.damaged && error.is_corruption() => return Ok(()),
            // The creation of the store itself was cut short.
            Err(error) if error.is_not_found() && self.model.acknowledged() == 0 => return Ok(()),
            Err(error) => return Err(format!("it does not open for reading: {error:?}")),
        };
        let sight = glance(&store, self.model);
        if !sight.wrong.is_empty() {
            return Err(format!("for reading: {:?}", sight.wrong));
        }
        let whole = sight.lost.is_empty() && sight.told.is_empty();
        if !self.damaged && !whole {
            return Err(format!("for reading: lost {:?}, told {:?}", sight.lost, sight.told));
        }
        Ok(())
    }

    fn with_damage(&mut self, store: &SessionStore, random: &mut Random, depth: u64) -> Verdict {
        let mut sight = look(store, self.model);
        let doubtful = store.recovery().cut.iter().filter(|cut| cut.may_have_been_acknowledged);
        sight.told.extend(doubtful.map(|cut| format!("cut: {cut:?}")));
        if !sight.wrong.is_empty() {
            return Err(format!("wrong data: {:?}", sight.wrong));
        }
        if sight.told.is_empty() && !sight.lost.is_empty() {
            // The opening that the power cut short had told, perhaps, and what it told is in no file.
            if !(self.silent || depth > 0) || !self.is_a_suffix(&sight) {
                return Err(format!("lost without a word: {:?}; {:?}", sight.lost, store.recovery()));
            }
            self.tally.excused += 1;
        }
        if random.chance(1, 4) {
            let options = CreateOptions::new().id("after the damage");
            let made = store.create(options).and_then(|session| session.flush());
            if let Err(error) = made.as_ref()
                && !error.is_full()
            {
                return Err(format!("no new session after damage: {error:?}"));
            }
        }
        Ok(())
    }

    /// Whether only the last acknowledged events of sessions are gone: the write of the last commit was lost and
    /// nothing durable came after it, so that nothing is left that could tell.
    fn is_a_suffix(&self, sight: &Sight) -> bool {
        self.model.sessions.iter().all(|(id, known)| {
            let lost: Vec<u64> = sight.lost.iter().filter(|(of, _)| of == id).map(|(_, seq)| *seq).collect();
            let first = lost.iter().min().copied().unwrap_or(0);
            lost.is_empty() || lost.len() as u64 + first == known.acknowledged as u64
        })
    }

    /// Sessions are resumed, closed as the model says, appended to; the store is closed and opened again.
    fn go_on(&mut self, disk: &SimDisk, store: SessionStore, choice: u64, random: &mut Random) -> Verdict {
        if self.damaged {
            return self.open_again_with_damage(disk, store, choice);
        }
        disk.set_free_space(None);
        let mut model = self.model.clone();
        settle(&store, &mut model).map_err(|error| format!("settling: {error:?}"))?;
        let ids: Vec<String> = model.sessions.keys().cloned().collect();
        for id in &ids {
            resume(&store, &mut model, id, random)?;
        }
        let mark = model.mark(None);
        if let Err(error) = store.flush() {
            return Err(format!("the first flush: {error:?}"));
        }
        model.acknowledge_mark(&mark);
        store.close().map_err(|error| format!("the close: {error:?}"))?;
        let store =
            self.open(disk, choice ^ 1).map_err(|error| format!("it does not open again: {error:?}"))?;
        if !store.recovery().clean {
            return Err(format!("not clean after a close: {:?}", store.recovery()));
        }
        let complaints = check(&store, &model);
        if !complaints.0.is_empty() {
            return Err(format!("second opening: {:?}", complaints.0));
        }
        let stored = store.stored().map_err(|error| format!("listing: {error:?}"))?.flatten();
        let gone = |id: &String| model.sessions.get(id).is_none_or(|known| known.deletion != Deletion::No);
        let stored: Vec<String> = stored.map(|stat| stat.id).collect();
        if stored.iter().any(gone) || stored.len() != ids.len() {
            return Err(format!("second opening: {stored:?} instead of {ids:?}"));
        }
        Ok(())
    }

    fn open_again_with_damage(&mut self, disk: &SimDisk, store: SessionStore, choice: u64) -> Verdict {
        let first = look(&store, self.model);
        let report = store.recovery().clone();
        drop(store);
        let store =
            self.open(disk, choice ^ 1).map_err(|error| format!("it does not open again: {error:?}"))?;
        let again = look(&store, self.model);
        if !again.wrong.is_empty() {
            return Err(format!("second opening: {:?}", again.wrong));
        }
        if again.lost.len() > first.lost.len() {
            let reports = format!("{report:?}, then {:?}", store.recovery());
            return Err(format!(
                "more is lost by opening: {:?}, then {:?}; {reports}",
                first.lost, again.lost
            ));
        }
        Ok(())
    }
}

/// What recovery cut is evidence, and there (G4).
fn kept_aside(disk: &SimDisk, store: &SessionStore) -> Verdict {
    for cut in &store.recovery().cut {
        let Some(name) = cut.kept_in.as_ref().and_then(|name| name.to_str()) else { continue };
        let kept = disk.contents(name).map(|bytes| bytes.len() as u64);
        if kept.is_none_or(|kept| kept == 0 || kept > cut.length) {
            return Err(format!("{kept:?} bytes are kept of {cut:?}"));
        }
    }
    Ok(())
}

/// What is stored of a session is what its lines say, in every form; then it is resumed and appended to.
fn resume(store: &SessionStore, model: &mut Model, id: &str, random: &mut Random) -> Verdict {
    let reader = store.open(id).map_err(|error| format!("{id}: {error:?}"))?;
    let lines = model.sessions.get(id).map(|known| known.lines.clone()).unwrap_or_default();
    let history = History::of(&lines);
    let nodes = reader.surface().map_err(|error| format!("{id}: {error:?}"))?;
    let nodes: Vec<usize> = nodes.iter().filter_map(|node| usize::try_from(node.seq).ok()).collect();
    if nodes != history.surface {
        return Err(format!("{id}: the surface is {nodes:?}, not {:?}", history.surface));
    }
    let derived = reader.derive_messages().map_err(|error| format!("{id}: {error:?}"))?;
    let parsed = derived.iter().map(|message| serde_json::from_str(&message.to_line()).unwrap_or_default());
    if parsed.collect::<Vec<serde_json::Value>>() != messages(&lines) {
        return Err(format!("{id}: other messages than those of its events"));
    }
    let closers = history.closers();
    let resumed = store.resume(id).map_err(|error| format!("{id} does not resume: {error:?}"))?;
    let given: Vec<String> = resumed.closers.iter().map(|event| event.to_line()).collect();
    if given != closers {
        return Err(format!("{id}: closers {given:?} instead of {closers:?}"));
    }
    if !closers.is_empty() {
        model.attempt(id, closers);
    }
    let lines = model.sessions.get(id).map(|known| known.lines.clone()).unwrap_or_default();
    let made = History::of(&lines).next(10, random);
    let event = made.new_event().map_err(|error| format!("{error:?}"))?;
    model.attempt(id, [made.line]);
    match resumed.session.append(event) {
        Ok(_) => {
            model.accept(id);
            Ok(())
        }
        Err(error) if error.is_full() || error.is_backpressure() => {
            model.retract(id);
            model.accept(id);
            Ok(())
        }
        Err(error) => Err(format!("{id} takes no event: {error:?}")),
    }
}
