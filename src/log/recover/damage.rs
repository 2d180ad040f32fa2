//! What recovery finds damaged or missing, as LIVE keeps it and as reports tell it.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::format::{ControlSlot, DamageReason, LiveDamage, LiveSet, names};
use crate::log::rebuild::damaged;
use crate::log::report::Loss;
use crate::log::scan::{BadSpot, Reason};
use crate::log::survey::Survey;

/// As many segments may be missing; more is a number that no store reached.
const MOST_MISSING: usize = 1 << 16;

/// Members of the live set whose file is not there.
///
/// # Errors
/// `Corrupt`: there are more of them than any store loses, so CONTROL or LIVE belongs to another one.
pub(crate) fn missing_members(survey: &Survey, live: &LiveSet, control: ControlSlot) -> Result<Vec<u32>> {
    let highest = survey.segments.last().copied().unwrap_or(0).max(control.active);
    let known: BTreeSet<u32> =
        live.damage.iter().filter(|d| d.reason == DamageReason::MissingFile).map(|d| d.segment).collect();
    let missing: Vec<u32> = live
        .live(highest)
        .filter(|number| survey.segments.binary_search(number).is_err() && !known.contains(number))
        .take(MOST_MISSING + 1)
        .collect();
    if missing.len() <= MOST_MISSING {
        return Ok(missing);
    }
    let text = format!(
        "{} names segment {highest}, and more than {MOST_MISSING} segments up to it are not there; \
         put this store's own file back",
        names::CONTROL
    );
    Err(Error::corrupt(names::CONTROL, 0, text))
}

/// The number of a new segment: above every one that is there, was there, or cannot be read.
pub(super) fn number_behind(highest: u32, missing: &[u32]) -> u32 {
    missing.iter().copied().max().unwrap_or(0).max(highest).saturating_add(1)
}

/// How many session ids whole segments could have handed out that nothing else tells of (F12).
pub(super) fn lost_ids(missing: &[u32]) -> u64 {
    (missing.len() as u64).saturating_mul(u64::from(u32::MAX) / 16)
}

pub(crate) fn whole_file(segment: u32, reason: DamageReason) -> LiveDamage {
    LiveDamage { segment, from: 0, to: u32::MAX, reason }
}

pub(crate) fn live_damage(spot: &BadSpot) -> LiveDamage {
    let damaged = damaged(spot);
    let reason = match spot.reason {
        Reason::ReadError => DamageReason::ReadError,
        Reason::Missing => DamageReason::MissingFile,
        _ => DamageReason::BadBytes,
    };
    let reason = if reason == DamageReason::MissingFile { DamageReason::BadBytes } else { reason };
    LiveDamage { segment: spot.segment, from: damaged.from, to: damaged.to, reason }
}

/// A known damage in words.
pub(crate) fn loss(damage: &LiveDamage) -> Loss {
    let message = match damage.reason {
        DamageReason::BadBytes => "acknowledged bytes do not validate",
        DamageReason::MissingFile => "the segment file is missing",
        DamageReason::ReadError => "the device returns a read error",
    };
    let length = if damage.to == u32::MAX { 0 } else { u64::from(damage.to.saturating_sub(damage.from)) };
    Loss {
        file: names::segment(damage.segment).into(),
        offset: u64::from(damage.from),
        length,
        message: message.into(),
    }
}
