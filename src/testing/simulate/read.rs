//! What actors do that only looks: whatever a store hands out must be what the model says, while others write.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::disk::Disk;
use crate::testing::model::Deletion;
use crate::testing::oracle::{check, glance};
use crate::testing::{SeededRuntime, SimDisk};
use crate::{Error, ErrorKind, Events, Message, Result, SessionStore, SurfaceNode};

use super::history::{History, messages};
use super::options::{options, seeded};
use super::script::Op;
use super::world::World;

impl World {
    pub(super) fn look(&self, op: Op) {
        let Some(id) = self.pick(op.which) else { return };
        let live = self.parts().live.get(&id).cloned();
        match live.filter(|_| !op.salt.is_multiple_of(3)) {
            Some(session) => {
                let lines = self.lines(&id);
                let surface = session.surface();
                if !session.is_live() {
                    // Detached, and perhaps resumed and appended to by another one.
                    return;
                }
                self.same_surface(&id, &lines, &surface);
                self.same_lines(&id, &lines, session.events());
                if !session.is_live() {
                    return;
                }
                let lines = self.lines(&id);
                let derived = session.derive_messages();
                self.same_messages(&id, &lines, derived);
            }
            None => self.look_at_stored(&id),
        }
    }

    /// A session that somebody deletes meanwhile may refuse to be read.
    fn judge_reading(&self, what: &str, id: &str, error: &Error) {
        let gone = [ErrorKind::Closed, ErrorKind::NotFound];
        let expected = if self.is_kept(id) { &[][..] } else { &gone[..] };
        self.judge_error(what, error, expected);
    }

    fn look_at_stored(&self, id: &str) {
        let Some(store) = self.store() else { return };
        let before = self.lines(id).len();
        let reader = match store.open(id) {
            Ok(reader) => reader,
            Err(error) => {
                return self.judge_reading(&format!("opening {id}"), id, &error);
            }
        };
        let count = usize::try_from(reader.seq()).unwrap_or(usize::MAX);
        let all = self.parts().model.sessions.get(id).map(|known| known.lines.clone()).unwrap_or_default();
        let Some(lines) = all.get(..count).filter(|_| count >= before) else {
            if self.is_kept(id) && !self.is_harmed() {
                self.fail(format!("{id} has {count} events for a reader, {before} and up to {}", all.len()));
            }
            return;
        };
        self.same_lines(id, lines, reader.events());
        match reader.surface() {
            Ok(surface) => self.same_surface(id, lines, &surface),
            Err(error) => self.judge_reading(&format!("surface of {id}"), id, &error),
        }
        self.same_messages(id, lines, reader.derive_messages());
    }

    fn same_lines(&self, id: &str, lines: &[Arc<str>], events: Events) {
        let mut seq = 0;
        for event in events {
            match event {
                Ok(event) => {
                    let line = event.to_line();
                    if lines.get(seq).is_none_or(|expected| **expected != line) {
                        return self.fail(format!("{id} seq {seq} reads {line}, not {:?}", lines.get(seq)));
                    }
                }
                Err(error) => return self.judge_reading(&format!("reading {id} seq {seq}"), id, &error),
            }
            seq += 1;
        }
        if seq != lines.len() {
            self.fail(format!("{id} has {seq} events to read, not {}", lines.len()));
        }
    }

    fn same_surface(&self, id: &str, lines: &[Arc<str>], surface: &[SurfaceNode]) {
        let expected: Vec<u64> = History::of(lines).surface.iter().map(|seq| *seq as u64).collect();
        let nodes: Vec<u64> = surface.iter().map(|node| node.seq).collect();
        if nodes != expected {
            self.fail(format!("{id}: the surface is {nodes:?}, not {expected:?} (S1)"));
        }
    }

    fn same_messages(&self, id: &str, lines: &[Arc<str>], derived: Result<Vec<Message>>) {
        let derived = match derived {
            Ok(derived) => derived,
            Err(error) => return self.judge_reading(&format!("messages of {id}"), id, &error),
        };
        let parsed = |message: &Message| serde_json::from_str(&message.to_line()).unwrap_or_default();
        let given: Vec<serde_json::Value> = derived.iter().map(parsed).collect();
        if given != messages(lines) {
            self.fail(format!("{id}: messages {given:?} (M)"));
        }
    }

    /// Session as lines, by the way that exports take.
    pub(super) fn export(&self, op: Op) {
        let (Some(store), Some(id)) = (self.store(), self.pick(op.which)) else { return };
        let Ok(reader) = store.open(&id) else { return };
        let count = usize::try_from(reader.seq()).unwrap_or(usize::MAX);
        let (mut events, mut text, mut line) = (reader.events(), String::new(), String::new());
        while let Some(item) = events.next_line(&mut line) {
            if let Err(error) = item {
                return self.judge_reading(&format!("export of {id}"), &id, &error);
            }
            text.push_str(line.trim_end_matches('\n'));
            text.push('\n');
            line.clear();
        }
        let all = self.parts().model.sessions.get(&id).map(|known| known.lines.clone()).unwrap_or_default();
        let expected: String = all.iter().take(count).map(|line| format!("{line}\n")).collect();
        if text != expected {
            self.fail(format!("{id} is exported as {text}\nand not as {expected}"));
        }
    }

    pub(super) fn list(&self) {
        let Some(store) = self.store() else { return };
        let before = self.parts().model.clone();
        let stored = match store.stored() {
            Ok(stored) => stored,
            Err(error) => return self.judge_error("listing", &error, &[]),
        };
        let mut seen = BTreeSet::new();
        for stat in stored {
            match stat {
                Ok(stat) => {
                    let after = self.parts().model.clone();
                    let most = after.sessions.get(&stat.id).map_or(0, |known| known.lines.len() as u64);
                    let least = before.sessions.get(&stat.id).map_or(0, |known| known.accepted as u64);
                    let lost = self.is_harmed();
                    if !(least..=most).contains(&stat.events) && !lost {
                        self.fail(format!("{} is listed with {} events of {most}", stat.id, stat.events));
                    }
                    seen.insert(stat.id);
                }
                Err(error) => return self.judge_error("listing", &error, &[ErrorKind::NotFound]),
            }
        }
        let after = self.parts().model.clone();
        for (id, known) in &before.sessions {
            let kept = after.sessions.get(id).is_some_and(|known| known.deletion == Deletion::No);
            if known.entered && kept && !seen.contains(id) && !self.is_harmed() {
                self.fail(format!("{id} is not listed"));
            }
        }
    }

    /// A reader in another process sees everything acknowledged, and nothing that was not written (G8).
    pub(super) fn follow(&self) {
        let before = self.parts().model.clone();
        let follower = self.parts().follower.take();
        let follower = match follower {
            Some(follower) => follower.refresh().map(|_| follower),
            None => {
                let disk = self.parts().disk.other_process();
                options(&self.script, &disk, Arc::new(self.scheduler.clone())).open_read_only("")
            }
        };
        let follower = match follower {
            Ok(follower) => follower,
            Err(error) => return self.judge_error("a follower", &error, &[]),
        };
        let sight = glance(&follower, &before);
        let later = before.until(&self.parts().model);
        let sight = if sight.wrong.is_empty() { sight } else { glance(&follower, &later) };
        let struck = self.parts().disk.struck();
        let excused = self.is_harmed() || struck.keys().any(|kind| !kind.is_harmless());
        if !sight.wrong.is_empty() {
            self.fail(format!("a follower sees {:?}", sight.wrong));
        }
        let whole = sight.told.is_empty() && sight.lost.is_empty();
        if !excused && !whole {
            let lost: Vec<_> = sight.lost.iter().filter(|(id, _)| self.is_kept(id)).collect();
            if !lost.is_empty() {
                self.fail(format!("a follower lacks {lost:?}, told {:?}", sight.told));
            }
        }
        if !self.is_over() {
            self.parts().follower = Some(follower);
        }
    }

    /// A copy of the live store holds what was acknowledged when it began, and opens for writing.
    pub(super) fn backup(&self) {
        let Some(store) = self.store() else { return };
        let before = self.parts().model.clone();
        let target = SimDisk::new();
        target.set_traced(false);
        let done = store.backup_to(Arc::new(target.clone()) as Arc<dyn Disk>);
        if let Err(error) = done {
            return self.judge_error("a backup", &error, &[]);
        }
        let model = before.until(&self.parts().model);
        if self.is_harmed() {
            return;
        }
        let opened = open_copy(self, &target);
        match opened {
            Ok(copy) => {
                let complaints = check(&copy, &model);
                if !complaints.0.is_empty() {
                    self.fail(format!("a backup: {:?}", complaints.0));
                }
                let _ = copy.close();
            }
            Err(error) => self.fail(format!("a backup does not open: {error:?}")),
        }
    }
}

fn open_copy(world: &World, target: &SimDisk) -> Result<SessionStore> {
    let runtime: Arc<SeededRuntime> = seeded(world.seed);
    options(&world.script, target, runtime).open("")
}
