//! Compares a store with the [`Model`] of what it may and must hold.
//!
//! Never: a comparison with what the engine itself says elsewhere. Expected lines are written by the driver.

use crate::{Loss, SessionStore};

use super::model::{Deletion, Known, Model};

/// What a comparison found wrong; empty when the store is as it must be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Complaints(pub Vec<String>);

impl Complaints {
    fn add(&mut self, text: String) {
        self.0.push(text);
    }
}

/// What a comparison with a damaged store saw.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sight {
    /// Something wrong that damage does not excuse: data that is not what was written, an event out of its place.
    pub wrong: Vec<String>,
    /// Acknowledged events that cannot be read, as `(session, seq)`.
    pub lost: Vec<(String, u64)>,
    /// The loss was told: by the report of opening, by an error in the place of the event, or by verification.
    pub told: Vec<String>,
}

/// After a crash: every acknowledged event is there, the rest is a clean prefix, nothing is reported lost (G1, G2).
#[must_use]
pub fn check(store: &SessionStore, model: &Model) -> Complaints {
    let mut complaints = Complaints::default();
    for Loss { file, offset, length, message, .. } in &store.recovery().losses {
        complaints.add(format!("loss reported: {} at {offset}+{length}: {message}", file.display()));
    }
    for (id, known) in &model.sessions {
        check_session(store, id, known, &mut complaints);
    }
    check_list(store, model, &mut complaints);
    let summary = store.verify(&mut |finding| {
        if !finding.note {
            complaints.add(format!("verify: {finding:?}"));
        }
    });
    if let Err(error) = summary {
        complaints.add(format!("verify failed: {error}"));
    }
    complaints
}

fn check_session(store: &SessionStore, id: &str, known: &Known, complaints: &mut Complaints) {
    let reader = match store.open(id) {
        Ok(reader) => reader,
        Err(error) if error.is_not_found() => {
            if known.created && known.deletion == Deletion::No {
                complaints.add(format!("{id}: acknowledged ({} events) and not there", known.acknowledged));
            }
            return;
        }
        Err(error) => return complaints.add(format!("{id}: {error}")),
    };
    if known.deletion == Deletion::Acknowledged {
        complaints.add(format!("{id}: its deletion was acknowledged and it is there"));
    }
    let mut count = 0;
    for event in reader.events() {
        match event {
            Ok(event) => {
                let line = event.to_line();
                match known.lines.get(count) {
                    Some(expected) if **expected == line => {}
                    Some(expected) => {
                        complaints.add(format!("{id} seq {count}: {line} instead of {expected}"))
                    }
                    None => complaints.add(format!("{id} seq {count}: never appended: {line}")),
                }
            }
            Err(error) => complaints.add(format!("{id} seq {count}: {error}")),
        }
        count += 1;
    }
    if count < known.acknowledged {
        complaints.add(format!("{id}: {count} events of {} acknowledged ones", known.acknowledged));
    }
    if !known.ends.contains(&count) {
        complaints.add(format!("{id}: {count} events split a batch; it may end at {:?}", known.ends));
    }
    match store.stat(id) {
        Ok(stat) if stat.events == count as u64 => {}
        other => complaints.add(format!("{id}: {count} events, yet the index says {other:?}")),
    }
}

fn check_list(store: &SessionStore, model: &Model, complaints: &mut Complaints) {
    let stored = match store.stored() {
        Ok(stored) => stored,
        Err(error) => return complaints.add(format!("listing: {error}")),
    };
    for stat in stored {
        match stat {
            Ok(stat) if model.sessions.contains_key(&stat.id) => {}
            Ok(stat) => complaints.add(format!("a session that nobody made: {}", stat.id)),
            Err(error) => complaints.add(format!("listing: {error}")),
        }
    }
}

/// With damage: whatever is handed out is right, and what cannot be handed out is known (G3).
#[must_use]
pub fn look(store: &SessionStore, model: &Model) -> Sight {
    let mut sight = Sight::default();
    for loss in &store.recovery().losses {
        sight.told.push(format!("report: {loss:?}"));
    }
    read_all(store, model, &mut sight);
    let summary = store.verify(&mut |finding| {
        if !finding.note {
            sight.told.push(format!("verify: {finding:?}"));
        }
    });
    if let Err(error) = summary {
        sight.told.push(format!("verify: {error}"));
    }
    sight
}

/// As [`look`], without a verification, and without what opening reported: for a look beside a writer.
#[must_use]
pub fn glance(store: &SessionStore, model: &Model) -> Sight {
    let mut sight = Sight::default();
    read_all(store, model, &mut sight);
    sight
}

fn read_all(store: &SessionStore, model: &Model, sight: &mut Sight) {
    for (id, known) in &model.sessions {
        look_session(store, id, known, sight);
    }
    look_at_orphans(store, model, sight);
}

fn look_session(store: &SessionStore, id: &str, known: &Known, sight: &mut Sight) {
    let mut seen = vec![false; known.lines.len()];
    match store.open(id) {
        Ok(reader) => {
            let (mut next, mut hole) = (0, false);
            for event in reader.events() {
                match event {
                    Ok(event) => {
                        if event.seq() != next && !std::mem::take(&mut hole) {
                            sight
                                .wrong
                                .push(format!("{id}: seq {} instead of {next}, and no word", event.seq()));
                        }
                        next = event.seq().saturating_add(1);
                        let seq = usize::try_from(event.seq()).unwrap_or(usize::MAX);
                        let line = event.to_line();
                        match (known.lines.get(seq), seen.get_mut(seq)) {
                            (Some(expected), Some(seen)) if **expected == line && !*seen => *seen = true,
                            _ => sight.wrong.push(format!("{id} seq {seq}: {line}")),
                        }
                    }
                    Err(error) => {
                        hole = true;
                        sight.told.push(format!("{id}: {error}"));
                    }
                }
            }
            if next != reader.seq() && !hole {
                sight.wrong.push(format!("{id}: it ends at seq {next} of {}, and no word", reader.seq()));
            }
        }
        Err(error) if error.is_not_found() => {}
        Err(error) => sight.told.push(format!("{id}: {error}")),
    }
    if known.deletion == Deletion::No {
        let lost = seen.iter().take(known.acknowledged).enumerate().filter(|(_, seen)| !**seen);
        sight.lost.extend(lost.map(|(seq, _)| (id.to_owned(), seq as u64)));
    }
}

/// Sessions whose opening record is lost show their events under a name of their own.
fn look_at_orphans(store: &SessionStore, model: &Model, sight: &mut Sight) {
    let Ok(stored) = store.stored() else { return };
    for stat in stored.flatten().filter(|stat| !model.sessions.contains_key(&stat.id)) {
        let Ok(reader) = store.open(&stat.id) else { continue };
        for event in reader.events().flatten() {
            let (seq, line) = (event.seq(), event.to_line());
            let at = usize::try_from(seq).unwrap_or(usize::MAX);
            let written = |known: &Known| known.lines.get(at).is_some_and(|known| **known == line);
            if !model.sessions.values().any(written) {
                sight.wrong.push(format!("{} seq {seq}: {line}", stat.id));
            }
            let same =
                |(id, lost): &(String, u64)| *lost == seq && model.sessions.get(id).is_some_and(written);
            if let Some(found) = sight.lost.iter().position(same) {
                sight.lost.swap_remove(found);
            }
        }
    }
}

/// Takes for acknowledged exactly what a store holds now: what a reopened store has, it keeps.
///
/// # Errors
/// The store cannot be read.
pub fn settle(store: &SessionStore, model: &mut Model) -> crate::Result<()> {
    let mut gone = Vec::new();
    for (id, known) in &mut model.sessions {
        match store.open(id) {
            Ok(reader) => {
                let count = usize::try_from(reader.seq()).unwrap_or(usize::MAX);
                known.lines.truncate(count);
                known.ends.retain(|end| *end <= count);
                known.acknowledged = count;
                known.accepted = count;
                known.created = true;
                known.deletion = Deletion::No;
                (known.entered, known.removed) = (true, false);
            }
            Err(error) if error.is_not_found() => gone.push(id.clone()),
            Err(error) => return Err(error),
        }
    }
    gone.iter().for_each(|id| drop(model.sessions.remove(id)));
    Ok(())
}
