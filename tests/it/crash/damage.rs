//! Small logs with every byte cut off and every bit flipped, one at a time (G3): what was acknowledged is there, or
//! the damage is told with its place and everything else is readable. Never wrong data, never a panic.
//!
//! A sector of 512 zero bytes (prepared space, the gap behind a slot of CONTROL) is one case and not 4,096: a flipped
//! bit there makes one byte that is not 0xFF, so no frame can begin in it, and all that can be seen of it is that the
//! sector is not zero. One bit of each such sector is flipped, another place in each, and one cut is made in it.
//!
//! The default run takes a sample, evenly spread over all bits; with `SESSIONLOG_CRASH_ROUNDS` above 1 it is every
//! bit and every byte (in release: minutes).

use std::collections::BTreeMap;
use std::sync::Arc;

use sessionlog::SessionStore;
use sessionlog::testing::oracle::{look, settle};
use sessionlog::testing::workload::{Op, open, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk, Workload};

use super::rounds;

const SECTOR: u64 = 512;

/// Of so many bits, and so many lengths to cut to, the default run tries one. Odd, so that every bit of a byte has its
/// turn.
const FLIPS_SAMPLED: usize = 181;
const CUTS_SAMPLED: usize = 37;

/// A store of a few events, all acknowledged, that was closed or killed.
struct Small {
    name: &'static str,
    disk: SimDisk,
    model: Model,
    /// By file: for each acknowledged event that stands in it, where its text ends.
    ends: BTreeMap<String, Vec<u64>>,
}

fn small(name: &'static str, closed: bool, ops: &[Op]) -> Small {
    let disk = SimDisk::new();
    let mut workload = Workload::new(&disk, 11).unwrap();
    workload.longest_in_batch = 30;
    workload.run(ops).unwrap();
    let (disk, model) = if closed {
        workload.close().unwrap();
        (workload.disk().snapshot(), workload.model.lock().clone())
    } else {
        (workload.disk().snapshot().kill_writer(), workload.model.lock().clone())
    };
    // What is judged is damage, not a crash: everything written is durable.
    let disk = disk.settled();
    let ends = disk.files().into_iter().map(|file| (file.clone(), ends_in(&disk, &model, &file))).collect();
    Small { name, disk, model, ends }
}

/// Where the texts of the acknowledged events end that stand in a segment. An event that cannot be told from others
/// by its text counts as being at the file's end.
fn ends_in(disk: &SimDisk, model: &Model, file: &str) -> Vec<u64> {
    if kind_of(file) != "segment" {
        return Vec::new();
    }
    let bytes = disk.contents(file).unwrap();
    let mut ends: Vec<u64> = Vec::new();
    for line in model.sessions.values().flat_map(|known| &known.lines) {
        let data = line.split_once(r#""data":"#).unwrap().1.trim_end_matches('}');
        let Some(text) = data.split('"').rfind(|text| text.len() > 8) else {
            ends.push(u64::MAX);
            continue;
        };
        if let Some(at) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
            ends.push((at + text.len()) as u64);
        }
    }
    ends
}

impl Small {
    /// The most events that cutting `file` to `length` may take: those behind the cut, and the group that it parts.
    fn reached_by_cut(&self, file: &str, length: u64) -> usize {
        let ends = self.ends.get(file).map_or(&[][..], Vec::as_slice);
        if kind_of(file) == "segment" { ends.iter().filter(|end| **end > length).count() + GROUP } else { 0 }
    }
}

fn stores() -> Vec<Small> {
    use Op::{Append, Batch, Create, FlushAll, Fork, Idle, Kill, Reopen};
    let few =
        [Create, Append(20), FlushAll, Append(30), Create, Append(10), FlushAll, Fork, Batch(3), FlushAll];
    let mut witnessed = few.to_vec();
    witnessed.push(Idle(50));
    let mut reopened = few.to_vec();
    // A frame of more than a sector, too.
    reopened.extend([Reopen, Append(25), FlushAll, Append(600), FlushAll]);
    // A segment a life, each with its index; and in the end a run of the directory.
    let mut lives = vec![Create, Append(20), FlushAll, Kill, Append(30), Create, FlushAll, Idle(50), Kill];
    lives.extend([Append(20), Fork, Batch(3), FlushAll, Idle(50), Kill, Append(20), FlushAll, Idle(50)]);
    vec![
        small("closed", true, &few),
        small("killed", false, &few),
        small("killed with a witness", false, &witnessed),
        small("reopened, closed", true, &reopened),
        small("reopened, killed", false, &reopened),
        small("four lives, closed", true, &lives),
        small("four lives, killed", false, &lives),
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
fn judge(disk: &SimDisk, model: &Model, file: &str, most: usize, deep: bool) -> Result<usize, String> {
    let look_at = |store, model| look_at(store, model, file);
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
fn look_at(store: sessionlog::Result<SessionStore>, model: &Model, file: &str) -> Result<usize, String> {
    let store = store.map_err(|error| format!("it does not open for reading: {error}"))?;
    let sight = look(&store, model);
    if !sight.wrong.is_empty() {
        return Err(format!("wrong data: {:?}", sight.wrong));
    }
    if !sight.lost.is_empty() && sight.told.is_empty() {
        return Err(format!("lost without a word: {:?}", sight.lost));
    }
    if !sight.lost.is_empty() && !sight.told.iter().any(|told| told.contains(file)) {
        return Err(format!("lost, and the file is not named: {:?}", sight.told));
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

/// The bits of a file that are worth flipping, as offset and bit: see the module.
fn bits(disk: &SimDisk, file: &str) -> Vec<(u64, u32)> {
    let bytes = disk.contents(file).unwrap_or_default();
    let mut bits = Vec::new();
    for (number, sector) in (0u64..).zip(bytes.chunks(512)) {
        let at = number * SECTOR;
        if sector.iter().all(|byte| *byte == 0) {
            let length = sector.len() as u64;
            bits.push((at + number * 37 % length, u32::try_from(number % 8).unwrap()));
        } else {
            bits.extend((at..at + sector.len() as u64).flat_map(|at| (0..8).map(move |bit| (at, bit))));
        }
    }
    bits
}

/// The lengths that are worth cutting a file to: see the module.
fn lengths(disk: &SimDisk, file: &str) -> Vec<u64> {
    let bytes = disk.contents(file).unwrap_or_default();
    let mut lengths = Vec::new();
    for (number, sector) in (0u64..).zip(bytes.chunks(512)) {
        let at = number * SECTOR;
        if sector.iter().all(|byte| *byte == 0) {
            lengths.extend([at, at + number * 37 % sector.len() as u64]);
        } else {
            lengths.extend(at..at + sector.len() as u64);
        }
    }
    lengths
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

/// Every how many cases are tried: all in a long run.
fn step(sampled: usize) -> usize {
    if rounds() > 1 { 1 } else { sampled }
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    let (mut flips, mut harmless, mut all, mut skip) = (0u64, 0u64, 0usize, 0usize);
    let mut failures = BTreeMap::new();
    let step = step(FLIPS_SAMPLED);
    for store in stores() {
        for file in store.disk.files() {
            let bits = bits(&store.disk, &file);
            all += bits.len();
            for (offset, bit) in bits.iter().copied().skip(skip).step_by(step) {
                let most = if kind_of(&file) == "segment" && offset >= 512 { GROUP } else { 0 };
                let disk = store.disk.snapshot();
                assert!(disk.flip(&file, offset, bit));
                flips += 1;
                match judge(&disk, &store.model, &file, most, flips.is_multiple_of(16)) {
                    Ok(lost) => harmless += u64::from(lost == 0),
                    Err(why) => {
                        let place = format!("{}, {file} byte {offset} bit {bit}", store.name);
                        note(&mut failures, format!("{}: {why}", kind_of(&file)), place);
                    }
                }
            }
            // The sample goes on over the end of a file.
            skip = (skip + step - bits.len() % step) % step;
        }
    }
    println!("flipped bits: {flips} of {all} in 7 stores, {harmless} without loss, the others told");
    report(&failures, "flipped bits");
}

#[test]
fn every_file_may_be_cut_at_every_byte() {
    let (mut cuts, mut whole, mut all, mut skip) = (0u64, 0u64, 0usize, 0usize);
    let mut failures = BTreeMap::new();
    let step = step(CUTS_SAMPLED);
    for store in stores() {
        for file in store.disk.files() {
            let lengths = lengths(&store.disk, &file);
            all += lengths.len();
            for length in lengths.iter().copied().skip(skip).step_by(step) {
                let most = store.reached_by_cut(&file, length);
                let disk = store.disk.snapshot();
                assert!(disk.truncate(&file, length));
                cuts += 1;
                match judge(&disk, &store.model, &file, most, cuts.is_multiple_of(16)) {
                    Ok(lost) => whole += u64::from(lost == 0),
                    Err(why) => {
                        let place = format!("{}, {file} cut at {length}", store.name);
                        note(&mut failures, format!("{}: {why}", kind_of(&file)), place);
                    }
                }
            }
            skip = (skip + step - lengths.len() % step) % step;
        }
    }
    println!("cuts: {cuts} of {all} in 7 stores, {whole} without loss, the others told");
    report(&failures, "cuts");
}

#[test]
fn damage_in_a_store_of_several_segments_is_told_and_nothing_else_is_lost() {
    let store = rotated();
    let mut failures = BTreeMap::new();
    let segments = store.disk.files().iter().filter(|name| name.ends_with(".seg")).count();
    assert!(segments > 2, "{:?}", store.disk.files());
    let (mut flips, step) = (0u64, if rounds() > 1 { 59 } else { 9001 });
    for file in store.disk.files() {
        let kind = kind_of(&file);
        let mut judged = |what: String, most: usize, deep: bool, harm: &dyn Fn(&SimDisk)| {
            let disk = store.disk.snapshot();
            harm(&disk);
            if let Err(why) = judge(&disk, &store.model, &file, most, deep) {
                note(&mut failures, format!("{kind}: {why}"), format!("{file} {what}"));
            }
        };
        let length = store.disk.contents(&file).unwrap().len() as u64;
        let bits = bits(&store.disk, &file).into_iter().enumerate();
        let chosen = bits.filter(|(index, (at, _))| index % step == 0 || *at < 700 && index % 1543 == 0);
        for (_, (offset, bit)) in chosen {
            flips += 1;
            let most = if kind == "segment" && offset >= 512 { GROUP } else { 0 };
            let what = format!("byte {offset} bit {bit}");
            judged(what, most, flips.is_multiple_of(16), &|disk| assert!(disk.flip(&file, offset, bit)));
        }
        let most = if kind == "segment" { usize::MAX } else { 0 };
        for length in [0, 1, 511, 512, length / 2, length.saturating_sub(1)] {
            let most = if kind == "segment" { store.reached_by_cut(&file, length) } else { 0 };
            judged(format!("cut at {length}"), most, true, &|disk| assert!(disk.truncate(&file, length)));
        }
        judged("removed".into(), most, true, &|disk| assert!(disk.remove(&file)));
        judged("first sector zeroed".into(), 0, true, &|disk| assert!(disk.zero(&file, 0..512)));
    }
    println!(
        "{segments} segments: {flips} flips; each file cut at 6 places, removed, its first sector zeroed"
    );
    report(&failures, "several segments");
}
