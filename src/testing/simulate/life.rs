//! The lives of a store, one after the other: opened with faults, used by actors at once, ended, judged.

use std::sync::Arc;
use std::time::Duration;

use crate::testing::oracle::{check, settle};
use crate::testing::random::mix;
use crate::testing::sim_disk::CHANCES;
use crate::testing::{DiskOp, FaultKind, FaultKind as K, FaultPlan, Random, SimDisk};
use crate::{Result, SessionStore};

use super::judge::Judge;
use super::options::options;
use super::script::{End, Life, Op, Verb};
use super::witness;
use super::world::World;

impl World {
    /// Everything that the script says.
    pub(super) fn live_through(self: &Arc<Self>) {
        let script = Arc::clone(&self.script);
        let mut disk = SimDisk::new();
        if script.space > 0 {
            disk.set_free_space(Some(script.space));
        }
        for (number, life) in (0..).zip(&script.lives) {
            self.attach(&disk);
            let Some(store) = self.open(&disk, number) else { return };
            if self.is_broken() || self.is_harmed() {
                drop(store);
                break;
            }
            self.settle(&store);
            disk.plan_faults(self.plan(number));
            self.act(life, store);
            disk = self.end(life, number);
            if self.is_broken() || self.is_harmed() {
                break;
            }
        }
        self.drop_stores();
        disk.clear_on_call();
        disk.clear_faults();
        self.last_look(&disk);
    }

    fn is_broken(&self) -> bool {
        self.parts().failure.is_some()
    }

    /// Makes `disk` the one of this life: others go on around its calls, and some are places of crashes.
    fn attach(self: &Arc<Self>, disk: &SimDisk) {
        let scheduler = self.scheduler.clone();
        disk.on_pause(move |op| scheduler.pause(op));
        let world = Arc::downgrade(self);
        disk.on_call(move |call, op, disk| {
            if let Some(world) = world.upgrade() {
                world.may_crash(call, op, disk);
            }
        });
        let mut parts = self.parts();
        parts.disk = disk.clone();
        (parts.next_disk, parts.closed, parts.closed_well) = (None, false, false);
    }

    /// At a disk call of the run: now and then, what a crash at this moment leaves is judged.
    fn may_crash(&self, call: u64, op: DiskOp, disk: &SimDisk) {
        let draw = mix(mix(self.seed ^ 0xC4A5).wrapping_add(call));
        let place = op.is_change() || op.is_sync();
        // Calls that change nothing are worth less.
        if !place && draw >> 60 > 3 || draw % CHANCES >= self.script.crashes {
            return;
        }
        let choice = mix(draw);
        let killed = choice.is_multiple_of(4);
        let left = if killed { disk.snapshot().kill_writer() } else { disk.crash(choice) };
        self.judge(&left, killed, choice, &format!("at call {call} ({op})"));
    }

    fn judge(&self, left: &SimDisk, killed: bool, choice: u64, place: &str) {
        let harmed = self.is_harmed() || self.reads_failed(left) || has_damage(left);
        let damaged = harmed && !self.script.lies;
        let mut model = self.parts().model.clone();
        let mut tally = super::Tally::default();
        tally.kills += u64::from(killed);
        let mut random = Random::new(mix(choice ^ 0xDA));
        // Now and then, damage is done to what is left.
        let kinds = [K::BitRot, K::BitRot, K::ZeroedPage, K::Vanished, K::BadSector];
        let wanted = random.chance(1, 4) && !self.script.lies;
        let harmed = wanted && random.pick(&kinds).is_some_and(|kind| left.harm(*kind, random.next_u64()));
        let damaged = damaged || harmed;
        if damaged {
            model.sessions.extend(self.parts().former.clone());
        }
        // Two kinds of damage at once may hit what happened and what tells of it.
        let struck = left.struck();
        let silent = struck.keys().any(|kind| kind.may_leave_no_trace())
            || struck.keys().filter(|kind| kind.is_damage()).count() > 1;
        let verdict = Judge { script: &self.script, model: &model, damaged, silent, tally: &mut tally }
            .over(left, choice);
        let mut parts = self.parts();
        parts.tally.add(&tally);
        if let Err(why) = verdict {
            let how = if killed { "killed" } else { "power cut" };
            parts.failure.get_or_insert(format!("{how} {place}: {why}"));
        }
    }

    /// The faults of a life: the same kinds at other places.
    fn plan(&self, number: u64) -> FaultPlan {
        let mut plan = self.script.faults.clone();
        plan.seed = mix(plan.seed.wrapping_add(number));
        plan
    }

    /// Opens the store, with faults first; if they keep it from opening, without.
    fn open(&self, disk: &SimDisk, number: u64) -> Option<SessionStore> {
        disk.plan_faults(self.plan(number));
        let before = disk.struck();
        self.parts().opening = Some(before.get(&FaultKind::ReadFails).copied().unwrap_or(0));
        let opened = self.open_on(disk);
        let failing = self.reads_failed(disk);
        {
            let mut parts = self.parts();
            parts.damaged |= failing;
            parts.opening = None;
        }
        disk.clear_faults();
        match opened {
            Ok(store) => {
                self.examine(&store);
                Some(store)
            }
            Err(error) => {
                let struck = disk.struck();
                let explained =
                    struck.keys().any(|kind| !kind.is_harmless()) || self.script.space > 0 && error.is_full();
                if !explained {
                    self.fail(format!("it does not open: {error:?}"));
                    return None;
                }
                self.open_after_all(disk)
            }
        }
    }

    /// A read failed while the store is being opened: below the witness that passes for damage (E2).
    fn reads_failed(&self, disk: &SimDisk) -> bool {
        let before = self.parts().opening;
        before.is_some_and(|before| disk.struck().get(&FaultKind::ReadFails).copied().unwrap_or(0) > before)
    }

    fn open_after_all(&self, disk: &SimDisk) -> Option<SessionStore> {
        disk.evict_clean();
        let mut opened = self.open_on(disk);
        if matches!(&opened, Err(error) if error.is_full()) && self.script.space > 0 {
            disk.set_free_space(None);
            opened = self.open_on(disk);
        }
        match opened {
            Ok(store) => {
                self.examine(&store);
                Some(store)
            }
            Err(error) => {
                if !(self.is_harmed() && error.is_corruption()) {
                    self.fail(format!("it does not open after a failed opening: {error:?}"));
                }
                None
            }
        }
    }

    fn open_on(&self, disk: &SimDisk) -> Result<SessionStore> {
        options(&self.script, disk, Arc::new(self.scheduler.clone())).open("")
    }

    /// What an opened store holds is what it must.
    fn examine(&self, store: &SessionStore) {
        if self.is_harmed() {
            return;
        }
        let model = self.parts().model.clone();
        let complaints = check(store, &model);
        if !complaints.0.is_empty() {
            self.fail(format!("after an opening: {:?}; report {:?}", complaints.0, store.recovery()));
        }
    }

    /// What is there now is acknowledged.
    fn settle(&self, store: &SessionStore) {
        let mut model = self.parts().model.clone();
        let settled = settle(store, &mut model);
        let mut parts = self.parts();
        let before = std::mem::take(&mut parts.model);
        // A lost tombstone may bring them back.
        parts.former.extend(before.sessions.into_iter().filter(|(id, _)| !model.sessions.contains_key(id)));
        if let Err(error) = settled {
            parts.failure.get_or_insert(format!("settling: {error:?}"));
        }
        parts.model = model;
        let there: Vec<String> = parts.model.undeleted();
        parts.usable.retain(|id| there.contains(id));
        for id in there {
            if !parts.usable.contains(&id) {
                parts.usable.push(id);
            }
        }
        parts.store = Some(store.clone());
    }

    /// The actors at work, each on a thread of its own.
    fn act(self: &Arc<Self>, life: &Life, store: SessionStore) {
        drop(store);
        let mut by_actor: Vec<Vec<Op>> = Vec::new();
        for op in &life.ops {
            let actor = usize::try_from(op.actor).unwrap_or(0) % 64;
            if by_actor.len() <= actor {
                by_actor.resize_with(actor + 1, Vec::new);
            }
            if let Some(ops) = by_actor.get_mut(actor) {
                ops.push(*op);
            }
        }
        let actors: Vec<_> = by_actor
            .into_iter()
            .filter(|ops| !ops.is_empty())
            .map(|ops| {
                let world = Arc::clone(self);
                self.scheduler.spawn_actor("actor", move || {
                    for op in ops {
                        if world.is_over() || world.is_broken() {
                            return;
                        }
                        world.count(op.verb);
                        world.perform(op);
                    }
                })
            })
            .collect();
        for actor in actors {
            // A panic has failed the run already.
            let _ = actor.join();
        }
    }

    fn perform(&self, op: Op) {
        match op.verb {
            Verb::Create => self.create(),
            Verb::Append | Verb::Large | Verb::Batch | Verb::Expect | Verb::Race | Verb::Replace => {
                self.append(op);
            }
            Verb::Flush | Verb::FlushAll | Verb::Ticket | Verb::Write => self.flush(op),
            Verb::Fork => self.fork(op),
            Verb::Delete => self.delete(op),
            Verb::Detach => self.detach(op),
            Verb::Idle => self.scheduler.sleep(Duration::from_millis(op.size)),
            Verb::Look => self.look(op),
            Verb::List => self.list(),
            Verb::Follow => self.follow(),
            Verb::Export => self.export(op),
            Verb::Backup => self.backup(),
            Verb::Clock => {
                let back = i64::try_from(op.salt).unwrap_or(0);
                self.scheduler.set_unix_millis(1_600_000_000_000 - back);
            }
            Verb::Close => self.close(),
            Verb::Kill => self.kill(),
        }
    }

    /// Ends a life; the disk of the next one.
    fn end(&self, life: &Life, number: u64) -> SimDisk {
        self.look_at_fault();
        self.rest(number);
        if !self.is_over() {
            match life.end {
                End::Close => self.close(),
                End::Kill | End::Cut => self.kill(),
            }
        }
        let (disk, next, closed_well) = {
            let parts = self.parts();
            (parts.disk.clone(), parts.next_disk.clone(), parts.closed_well)
        };
        self.drop_stores();
        disk.clear_on_call();
        disk.clear_faults();
        if closed_well && !self.is_harmed() {
            self.look_at_witness(&disk);
        }
        let next = next.unwrap_or_else(|| disk.other_process());
        let mut random = Random::new(self.seed.wrapping_add(number));
        let left = if life.end == End::Cut { next.crash(random.next_u64()) } else { next };
        let calls = disk.calls();
        self.parts().tally.calls += calls;
        self.mix_trace(disk.trace_hash());
        left
    }

    /// The last handles go, and with them the background tasks.
    fn drop_stores(&self) {
        let mut parts = self.parts();
        parts.busy.clear();
        let live = std::mem::take(&mut parts.live);
        let stores = (parts.store.take(), parts.follower.take());
        drop(parts);
        drop((live, stores));
    }

    /// Sometimes everything is flushed and then left alone: a witness frame must come that promises all of it (E1).
    fn rest(&self, number: u64) {
        let Some(store) = self.store() else { return };
        let asked = mix(self.seed.wrapping_add(number)).is_multiple_of(3);
        let unfit = self.is_over() || self.is_broken() || self.is_harmed();
        if !asked || unfit || self.script.space > 0 {
            return;
        }
        let disk = self.parts().disk.clone();
        disk.clear_faults();
        let mark = self.parts().model.mark(None);
        match store.flush() {
            Ok(()) => self.parts().model.acknowledge_mark(&mark),
            Err(error) => return self.judge_error("a flush", &error, &[]),
        }
        self.scheduler.sleep(Duration::from_millis(200));
        if store.fault().is_some() {
            return;
        }
        match witness::unpromised(&disk, self.script.segment) {
            None => self.parts().tally.witnesses += 1,
            Some(at) => self.fail(format!("nothing promises the frame at {at}, long acknowledged (E1)")),
        }
    }

    fn look_at_fault(&self) {
        let store = self.store();
        if store.is_some_and(|store| store.fault().is_some()) {
            self.parts().tally.poisoned += 1;
        }
    }

    fn look_at_witness(&self, disk: &SimDisk) {
        if self.parts().model.acknowledged() == 0 {
            return;
        }
        match witness::missing(disk) {
            None => self.parts().tally.witnesses += 1,
            Some(why) => self.fail(format!("no witness after a close (E3): {why}")),
        }
    }

    /// What is left at the end.
    fn last_look(&self, disk: &SimDisk) {
        let struck = disk.struck();
        {
            let mut parts = self.parts();
            parts.tally.faults = struck;
            parts.disk = disk.clone();
        }
        if !self.is_broken() {
            self.judge(&disk.snapshot().kill_writer(), true, self.seed, "at the end");
        }
    }
}

fn has_damage(disk: &SimDisk) -> bool {
    disk.struck().keys().any(|kind| kind.is_damage())
}
