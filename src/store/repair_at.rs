//! The repair state at a place of a session (R1), found without reading its chunks.
//!
//! Always: the answer is the one that a fold over all events up to there gives: turn/start and turn/end forget
//! everything before them, so the fold starts at the last of these, and only the classes that count are decoded.

use crate::error::Result;
use crate::event::{Class, Event, RepairState, Time};
use crate::log::Structure;

use super::place::Place;

/// The repair state behind the last event below `cut`. Where a loss was accepted, events that cannot be read count
/// as absent.
fn repair_state(place: &Place, structure: &[Structure], cut: u64) -> Result<RepairState> {
    let before = structure.get(..structure.partition_point(|one| one.seq < cut)).unwrap_or_default();
    let boundary = before.iter().rposition(|one| matches!(one.class, Class::TurnStart | Class::TurnEnd));
    let mut state = RepairState::default();
    // Without a turn/start there is no open turn and nothing to close; a turn/end cleared all.
    let open = boundary.filter(|at| before.get(*at).is_some_and(|one| one.class == Class::TurnStart));
    let Some(start) = open else { return Ok(state) };
    let rest = before.get(start..).unwrap_or_default();
    for one in rest.iter().filter(|one| RepairState::counts(one.class)) {
        match place.event(one.seq) {
            Ok(event) => state.observe(&event),
            Err(error) if place.is_lossy() && error.is_corruption() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(state)
}

/// The closers that the first `cut` events need (R2), none when they are balanced.
pub(super) fn closers(place: &Place, structure: &[Structure], cut: u64) -> Result<Vec<Event>> {
    closers_behind(place, structure, cut, cut)
}

/// As [`closers`], where the events from `known` on are lost and only their seqs are still taken.
pub(super) fn closers_behind(
    place: &Place,
    structure: &[Structure],
    known: u64,
    cut: u64,
) -> Result<Vec<Event>> {
    let state = repair_state(place, structure, cut)?;
    if !state.open_turn() {
        return Ok(Vec::new());
    }
    Ok(state.closers(cut, &last_time(place, known)?))
}

/// How far back a readable event is looked for where a loss was accepted.
const LOOK_BACK: u64 = 1000;

/// The time of the last event below `cut`; where a loss was accepted, of the last one that can be read.
fn last_time(place: &Place, cut: u64) -> Result<Time> {
    let mut at = cut;
    while let Some(seq) = at.checked_sub(1).filter(|seq| seq.saturating_add(LOOK_BACK) >= cut) {
        match place.event(seq) {
            Ok(event) => return Ok(event.time().clone()),
            Err(error) if place.is_lossy() && error.is_corruption() => at = seq,
            Err(error) => return Err(error),
        }
    }
    Ok(Time::from_millis(0))
}
