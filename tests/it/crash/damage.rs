//! Small logs with every byte cut off and every bit flipped, one at a time (G3): what was acknowledged is there, or
//! the damage is told and everything else is readable. Never wrong data, never a panic.

use std::collections::BTreeMap;
use std::sync::Arc;

use sessionlog::SessionStore;
use sessionlog::testing::oracle::{look, settle};
use sessionlog::testing::workload::{Op, open, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk, Workload};

use super::rounds;

/// A store of a few events, all acknowledged, that was closed or killed.
struct Small {
    name: &'static str,
    disk: SimDisk,
    model: Model,
}

fn small(name: &'static str, closed: bool, ops: &[Op]) -> Small {
    let disk = SimDisk::new();
    let mut workload = Workload::new(&disk, 11).unwrap();
    workload.run(ops).unwrap();
    let (disk, model) = if closed {
        workload.close().unwrap();
        (disk.snapshot(), workload.model.lock().clone())
    } else {
        (disk.snapshot().kill_writer(), workload.model.lock().clone())
    };
    // What is judged is damage, not a crash: everything written is durable.
    Small { name, disk, model }
}

fn stores() -> Vec<Small> {
    use Op::{Append, Batch, Create, FlushAll, Fork, Idle, Reopen};
    let few =
        [Create, Append(20), FlushAll, Append(30), Create, Append(10), FlushAll, Fork, Batch(3), FlushAll];
    let mut witnessed = few.to_vec();
    witnessed.push(Idle(50));
    let mut reopened = few.to_vec();
    reopened.extend([Reopen, Append(25), FlushAll, Append(700), FlushAll]);
    vec![
        small("closed", true, &few),
        small("killed", false, &few),
        small("killed with a witness", false, &witnessed),
        small("reopened, closed", true, &reopened),
        small("reopened, killed", false, &reopened),
    ]
}

/// Several segments with indexes.
fn rotated() -> Small {
    let mut ops = vec![Op::Create, Op::Append(20), Op::Create];
    for _ in 0..16 {
        ops.extend([Op::Append(9000), Op::FlushAll, Op::Append(20), Op::Idle(30)]);
    }
    ops.extend([Op::FlushAll, Op::Idle(100), Op::FlushAll]);
    small("rotated", true, &ops)
}

/// The most events that one group holds: what a damaged header of a frame may take.
const GROUP: usize = 6;

/// What a damaged store may do. Err is the reason why it may not.
fn judge(disk: &SimDisk, model: &Model, most: usize, deep: bool) -> Result<usize, String> {
    let reader = look_at(open_reader(disk), model)?;
    let (store, _) = open(disk, 5).map_err(|error| format!("it does not open for writing: {error}"))?;
    let writer = look_at(Ok(store), model)?;
    if deep || writer > 0 {
        // A second opening tells the same, and the first one destroyed nothing.
        let (store, _) = open(disk, 6).map_err(|error| format!("it does not open again: {error}"))?;
        let again = look_at(Ok(store), model)?;
        if again != writer {
            return Err(format!("the second opening sees other losses: {again} events, the first {writer}"));
        }
        go_on(disk, &mut model.clone())?;
    }
    let lost = reader.max(writer);
    if lost > most {
        return Err(format!("{lost} events lost; the damage can reach {most} at most"));
    }
    Ok(lost)
}

/// A new session works in a store with damage, and old ones that are whole resume.
fn go_on(disk: &SimDisk, model: &mut Model) -> Result<(), String> {
    let (store, _) = open(disk, 7).map_err(|error| format!("third opening: {error}"))?;
    settle(&store, model).map_err(|error| format!("settling: {error}"))?;
    let options = sessionlog::CreateOptions::new().id("after the damage");
    let session = store.create(options).map_err(|error| format!("no new session: {error}"))?;
    let (event, _) = sessionlog::testing::workload::event(0, "new").unwrap();
    session.append(event).map_err(|error| format!("no new event: {error}"))?;
    store.close().map_err(|error| format!("close: {error}"))?;
    let (store, _) = open(disk, 8).map_err(|error| format!("fourth opening: {error}"))?;
    match store.open("after the damage").map(|reader| reader.seq()) {
        Ok(1) => Ok(()),
        other => Err(format!("the new session is {other:?}")),
    }
}

fn open_reader(disk: &SimDisk) -> sessionlog::Result<SessionStore> {
    let runtime = Arc::new(SeededRuntime::new(4));
    options(disk, &runtime).open_read_only("")
}

/// How many acknowledged events an opened store lost; Err if it says nothing of it, or says something wrong.
fn look_at(store: sessionlog::Result<SessionStore>, model: &Model) -> Result<usize, String> {
    let store = store.map_err(|error| format!("it does not open for reading: {error}"))?;
    let sight = look(&store, model);
    if !sight.wrong.is_empty() {
        return Err(format!("wrong data: {:?}", sight.wrong));
    }
    if !sight.lost.is_empty() && sight.told.is_empty() {
        return Err(format!("lost without a word: {:?}", sight.lost));
    }
    Ok(sight.lost.len())
}

fn kind_of(file: &str) -> &'static str {
    match file {
        "LOCK" | "CONTROL" | "LIVE" => "fixed",
        name if name.ends_with(".seg") => "segment",
        name if name.ends_with(".prep") => "prepared",
        _ => "derived",
    }
}

/// Bytes of a file that are of interest: up to behind the last one that is not zero.
fn used(disk: &SimDisk, file: &str) -> u64 {
    let bytes = disk.contents(file).unwrap_or_default();
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1)
}

fn report(failures: &BTreeMap<String, (u64, String)>, what: &str) {
    for (why, (count, first)) in failures {
        println!("{count} times: {why}\n    first: {first}");
    }
    assert!(failures.is_empty(), "{what}: {} ways to fail", failures.len());
}

fn note(failures: &mut BTreeMap<String, (u64, String)>, why: String, place: String) {
    let short: String = why.chars().filter(|letter| !letter.is_ascii_digit()).take(110).collect();
    let entry = failures.entry(short).or_insert_with(|| {
        println!("FAILS {place}: {why}");
        (0, format!("{place}: {why}"))
    });
    entry.0 += 1;
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let (mut flips, mut harmless) = (0u64, 0u64);
    let mut failures = BTreeMap::new();
    let step = if rounds() > 1 { 1 } else { 401 };
    for store in stores() {
        for file in store.disk.files() {
            for offset in 0..used(&store.disk, &file) {
                let most = if kind_of(&file) == "segment" && offset >= 512 { GROUP } else { 0 };
                // The default run takes a sample, a long run every bit.
                for bit in 0..8 {
                    if (offset * 8 + u64::from(bit)) % step != 0 {
                        continue;
                    }
                    let disk = store.disk.snapshot();
                    assert!(disk.flip(&file, offset, bit));
                    flips += 1;
                    match judge(&disk, &store.model, most, flips.is_multiple_of(16)) {
                        Ok(lost) => harmless += u64::from(lost == 0),
                        Err(why) => {
                            let place = format!("{}, {file} byte {offset} bit {bit}", store.name);
                            note(&mut failures, format!("{}: {why}", kind_of(&file)), place);
                        }
                    }
                }
            }
        }
    }
    println!("flipped bits: {flips} in 5 stores, {harmless} without loss, the others told");
    report(&failures, "flipped bits");
}

#[test]
fn every_file_may_be_cut_at_every_byte() {
    let (mut cuts, mut whole) = (0u64, 0u64);
    let mut failures = BTreeMap::new();
    for store in stores() {
        let all = store.model.acknowledged();
        for file in store.disk.files() {
            // The default run takes a sample, a long run every byte.
            let step = if rounds() > 1 { 1 } else { 97 };
            for length in (0..=used(&store.disk, &file)).step_by(step) {
                let segment = kind_of(&file) == "segment";
                // A frame that the cut leaves whole keeps its events.
                let most = if segment { all - whole_before(&store, &file, length) } else { 0 };
                let disk = store.disk.snapshot();
                assert!(disk.truncate(&file, length));
                cuts += 1;
                match judge(&disk, &store.model, most, cuts.is_multiple_of(16)) {
                    Ok(lost) => whole += u64::from(lost == 0),
                    Err(why) => {
                        let place = format!("{}, {file} cut at {length}", store.name);
                        note(&mut failures, format!("{}: {why}", kind_of(&file)), place);
                    }
                }
            }
        }
    }
    println!("cuts: {cuts} in 5 stores, {whole} without loss, the others told");
    report(&failures, "cuts");
}

/// Events whose bytes, and at least one group behind them, lie before `length`.
fn whole_before(store: &Small, file: &str, length: u64) -> usize {
    let bytes = store.disk.contents(file).unwrap();
    let mut ends: Vec<usize> = Vec::new();
    for known in store.model.sessions.values() {
        for line in &known.lines {
            let data = line.split_once(r#""data":"#).unwrap().1.trim_end_matches('}');
            let text = data.split('"').rfind(|text| text.len() > 8).unwrap_or("-");
            if let Some(at) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
                ends.push(at + text.len());
            }
        }
    }
    ends.sort_unstable();
    let inside = ends.iter().filter(|end| **end as u64 <= length).count();
    inside.saturating_sub(GROUP)
}

#[test]
fn damage_in_a_store_of_several_segments_is_told_and_nothing_else_is_lost() {
    let store = rotated();
    let mut failures = BTreeMap::new();
    let segments = store.disk.files().iter().filter(|name| name.ends_with(".seg")).count();
    assert!(segments > 2, "{:?}", store.disk.files());
    let mut flips = 0u64;
    for file in store.disk.files() {
        let used = used(&store.disk, &file);
        let kind = kind_of(&file);
        println!("{file}: {used} bytes");
        let step = if rounds() > 1 { 97 } else { 9001 };
        let offsets: Vec<u64> =
            (0..used).filter(|at| *at < 700 && *at % 193 == 0 || at % step == 0).collect();
        for offset in offsets {
            let disk = store.disk.snapshot();
            disk.flip(&file, offset, (offset % 8) as u32);
            flips += 1;
            let most = if kind == "segment" && offset >= 512 { GROUP } else { 0 };
            if let Err(why) = judge(&disk, &store.model, most, flips.is_multiple_of(16)) {
                note(&mut failures, format!("{kind}: {why}"), format!("{file} byte {offset}"));
            }
        }
        for length in [0, 1, 511, 512, used / 2, used.saturating_sub(1)] {
            let disk = store.disk.snapshot();
            disk.truncate(&file, length);
            let most = if kind == "segment" { usize::MAX } else { 0 };
            if let Err(why) = judge(&disk, &store.model, most, flips.is_multiple_of(16)) {
                note(&mut failures, format!("{kind}: {why}"), format!("{file} cut at {length}"));
            }
        }
        let disk = store.disk.snapshot();
        disk.remove(&file);
        let most = if kind == "segment" { usize::MAX } else { 0 };
        if let Err(why) = judge(&disk, &store.model, most, flips.is_multiple_of(16)) {
            note(&mut failures, format!("{kind}: {why}"), format!("{file} removed"));
        }
        let disk = store.disk.snapshot();
        disk.zero(&file, 0..512);
        if let Err(why) = judge(&disk, &store.model, 0, true) {
            note(&mut failures, format!("{kind}: {why}"), format!("{file}: first sector zeroed"));
        }
    }
    println!(
        "{segments} segments: {flips} flips; each file cut at 6 places, removed, its first sector zeroed"
    );
    report(&failures, "several segments");
}
