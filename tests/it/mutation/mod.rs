//! The crash rig can fail (T5): each fault of the engine that can be switched on is caught by a campaign of `crash` or
//! `interleavings`, within its default run.
//!
//! Always: what catches a fault is the comparison of what a store hands out with what its driver wrote, or a check of
//! the engine's own that such a comparison runs into. Never: a look at the switch. The table of
//! `format-spec/mutations.md` is compared with this one.

mod campaigns;
mod table;

use std::panic::{AssertUnwindSafe, catch_unwind};

use sessionlog::mutation::{Mutation, Switches};

use crate::crash::{Judged, Verdict};
use campaigns::{Campaign, named};
use table::{CASES, Case};

/// A campaign with faults switched on: after how many judged cases something was wrong, and what.
fn run(faults: &[Mutation], campaign: &Campaign) -> (Judged, Verdict) {
    let mut judged = 0;
    let switches: Switches = faults.iter().copied().collect();
    let tried = AssertUnwindSafe(|| switches.within(|| (campaign.run)(campaign.seed, &mut judged)));
    // The engine asserts what must hold; a fault may well run into that.
    let verdict = catch_unwind(tried).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        Err(format!("it panicked: {}", text.unwrap_or_default()))
    });
    (judged, verdict)
}

fn is_caught(case: &Case) -> Result<(), String> {
    let (names, campaign) = (case.names(), named(case.campaign));
    let begun = std::time::Instant::now();
    match run(case.faults, campaign) {
        (judged, Err(why)) => println!(
            "{names}: caught by {} at case {} ({:.1?}): {why:.300}",
            campaign.name,
            judged.max(1),
            begun.elapsed()
        ),
        (judged, Ok(())) => return Err(format!("{names}: not caught by {} in {judged}", campaign.name)),
    }
    for part in case.harmless {
        if let (judged, Err(why)) = run(part, campaign) {
            return Err(format!(
                "{part:?} of {names}: not harmless, {} at case {judged}: {why}",
                campaign.name
            ));
        }
    }
    Ok(())
}

/// Every so many cases from `first` on, so that tests share them.
fn share(first: usize) {
    let only = std::env::var("SESSIONLOG_MUTATION").ok();
    let chosen = |case: &&Case| {
        only.as_ref().is_none_or(|only| case.faults.iter().any(|fault| format!("{fault:?}") == *only))
    };
    let cases = CASES.iter().skip(first).step_by(4).filter(chosen);
    let missed: Vec<String> = cases.filter_map(|case| is_caught(case).err()).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn each_fault_is_caught_1() {
    share(0);
}

#[test]
fn each_fault_is_caught_2() {
    share(1);
}

#[test]
fn each_fault_is_caught_3() {
    share(2);
}

#[test]
fn each_fault_is_caught_4() {
    share(3);
}

/// Switch, what it breaks, rule, what catches it, and at which case: see the file.
const SPEC: &str = include_str!("../../../format-spec/mutations.md");

#[test]
fn the_table_of_the_specification_is_the_one_that_is_run() {
    let rows = SPEC.lines().filter(|line| line.starts_with("| `")).map(|row| {
        let cells = row.trim_matches('|').split('|');
        cells.map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>()
    });
    let told: Vec<_> =
        rows.filter(|cells| cells.len() == 5).map(|cells| (cells[0].clone(), cells[3].clone())).collect();
    let run: Vec<_> = CASES.iter().map(|case| (case.names(), case.campaign.to_owned())).collect();
    assert_eq!(told, run);
    for fault in Mutation::ALL {
        let cases = CASES.iter().filter(|case| case.faults.contains(fault)).count();
        assert!(cases > 0, "{fault:?} is in no case");
    }
}
