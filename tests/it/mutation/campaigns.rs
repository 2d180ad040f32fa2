//! The campaigns by name, each with the seed of its default run.

use crate::crash::{
    Judged, Verdict, beside, damage, faults, index_frames, lives, locks, mirror, power, readers, repairs,
    staged,
};
use crate::interleavings;

/// See the module.
pub(super) struct Campaign {
    pub(super) name: &'static str,
    pub(super) seed: u64,
    pub(super) run: fn(u64, &mut Judged) -> Verdict,
}

const fn campaign(name: &'static str, seed: u64, run: fn(u64, &mut Judged) -> Verdict) -> Campaign {
    Campaign { name, seed, run }
}

/// All of them.
pub(super) static CAMPAIGNS: [Campaign; 39] = [
    campaign("power cuts", 1, power::cuts),
    campaign("kills", 1001, power::kills),
    campaign("cut recoveries", 2001, power::recovery_cuts),
    campaign("readers of crashes", 3001, power::readers_after),
    campaign("appends beside syncs", 1, beside::appends),
    campaign("failed syncs", 4001, faults::failed_syncs),
    campaign("failed writes", 5001, faults::failed_writes),
    campaign("full disks", 6001, faults::full_disks),
    campaign("full at one change", 9501, faults::refused_once),
    campaign("no space at all", 7001, faults::no_space),
    campaign("flipped bits", 1, damage::flips),
    campaign("flipped bits behind a cut", 1, damage::flips_behind_a_cut),
    campaign("flipped bits of derived files", 1, damage::flips_of_derived_files),
    campaign("cut files", 1, damage::cuts),
    campaign("zeroed sectors", 1, damage::zeroed),
    campaign("several segments", 1, damage::rotated),
    campaign("bytes behind the end", 1, damage::behind_the_end),
    campaign("index frames", 1, index_frames::bad_frames),
    campaign("lives", 1, lives::lives),
    campaign("known by runs", 1, lives::known_by_runs),
    campaign("two writers", 1, locks::two_writers),
    campaign("mirror: alternatives", 1, mirror::alternatives),
    campaign("mirror: segments", 1, mirror::segments),
    campaign("mirror: stale epochs", 1, mirror::stale_epochs),
    campaign("misdirected frames", 1, mirror::misdirected),
    campaign("misdirected records", 1, mirror::misdirected_records),
    campaign("follower", 8001, readers::follower),
    campaign("follower, drained", 8002, readers::follower),
    campaign("resumes", 1, repairs::resumes),
    campaign("staged imports", 1, staged::imports),
    campaign("creations", 1, power::creations),
    campaign("rotations", 1, power::rotations),
    campaign("drained logs", 1, power::drained),
    campaign("cut recoveries from damage", 1, damage::cut_recoveries),
    campaign("interleaved flushes", 1, interleavings::commits),
    campaign("interleaved waits for room", 1, interleavings::rooms),
    campaign("interleaved rotations", 1, interleavings::reservations),
    campaign("fallen leaders", 1, interleavings::fallen_leaders),
    campaign("older live sets", 1, damage::older_live),
];

pub(super) fn named(name: &str) -> &'static Campaign {
    CAMPAIGNS.iter().find(|campaign| campaign.name == name).unwrap_or_else(|| panic!("no campaign {name:?}"))
}
