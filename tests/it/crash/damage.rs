//! Small logs with every byte cut off and every bit flipped, one at a time (G3): what was acknowledged is there, or
//! the damage is told with its place and everything else is readable. Never wrong data, never a panic.
//!
//! A sector of 512 zero bytes (prepared space, the gap behind a slot of CONTROL) is one case and not 4,096: a flipped
//! bit there makes one byte that is not 0xFF, so no frame can begin in it, and all that can be seen of it is that the
//! sector is not zero. One bit of each such sector is flipped, another place in each, and one cut is made in it.
//!
//! The default run takes a sample, evenly spread over all bits; with `SESSIONLOG_CRASH_ROUNDS` above 1 it is every
//! bit and every byte (in release: minutes).

use std::sync::{Arc, Mutex};

use sessionlog::CreateOptions;
use sessionlog::testing::SimDisk;
use sessionlog::testing::oracle::look;
use sessionlog::testing::workload::{Op, event, open};

use super::hurt::{Left, Small, judge, kind_of, small, still_told, stores};
use super::power::{Moments, keep};
use super::{Judged, Verdict, agrees, campaign, fails, rounds, survive};

const SECTOR: u64 = 512;

/// Of so many bits, and so many lengths to cut to, the default run tries one. Odd, so that every bit of a byte has its
/// turn.
const FLIPS_SAMPLED: usize = 181;
const CUTS_SAMPLED: usize = 37;

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

/// Every how many cases are tried: all in a long run.
fn step(sampled: usize) -> usize {
    if rounds() > 1 { 1 } else { sampled }
}

/// Bits turned over one at a time, in every file.
pub(crate) fn flips(_: u64, judged: &mut Judged) -> Verdict {
    flips_where(&|store, _| store.left != Left::Cut, judged)
}

/// The same in segments of stores whose power was cut: up to the newest frame, which nothing else vouches for. A flipped
/// bit leaves no sector of it zero (F8).
pub(crate) fn flips_behind_a_cut(_: u64, judged: &mut Judged) -> Verdict {
    flips_where(&|store, file| store.left == Left::Cut && kind_of(file) == "segment", judged)
}

/// The same in index files and runs alone.
pub(crate) fn flips_of_derived_files(_: u64, judged: &mut Judged) -> Verdict {
    flips_where(&|store, file| store.left != Left::Cut && kind_of(file) == "derived", judged)
}

fn flips_where(chosen: &dyn Fn(&Small, &str) -> bool, judged: &mut Judged) -> Verdict {
    let (mut all, mut skip, step) = (0, 0, step(FLIPS_SAMPLED));
    for store in stores()? {
        for file in store.disk.files().into_iter().filter(|file| chosen(&store, file)) {
            let mut bits = bits(&store.disk, &file);
            if store.left == Left::Cut {
                let vouched = store.vouched(&file).saturating_add(SECTOR);
                bits.retain(|(offset, _)| *offset < vouched);
            }
            all += bits.len();
            for (offset, bit) in bits.iter().copied().skip(skip).step_by(step) {
                let disk = store.disk.snapshot();
                assert!(disk.flip(&file, offset, bit));
                *judged += 1;
                judge(&disk, &store.model, &file, store.most(&file, offset), judged.is_multiple_of(16))
                    .map_err(|why| format!("{}, {file} byte {offset} bit {bit}: {why}", store.name))?;
            }
            // The sample goes on over the end of a file.
            skip = (skip + step - bits.len() % step) % step;
        }
    }
    println!("of {all} bits");
    Ok(())
}

/// Every file cut, one length at a time.
pub(crate) fn cuts(_: u64, judged: &mut Judged) -> Verdict {
    let (mut all, mut skip, step) = (0, 0, step(CUTS_SAMPLED));
    for store in stores()?.into_iter().filter(|store| store.left != Left::Cut) {
        for file in store.disk.files() {
            let lengths = lengths(&store.disk, &file);
            all += lengths.len();
            for length in lengths.iter().copied().skip(skip).step_by(step) {
                let disk = store.disk.snapshot();
                assert!(disk.truncate(&file, length));
                *judged += 1;
                let most = store.reached_by_cut(&file, length);
                judge(&disk, &store.model, &file, most, judged.is_multiple_of(16))
                    .map_err(|why| format!("{}, {file} cut at {length}: {why}", store.name))?;
            }
            skip = (skip + step - lengths.len() % step) % step;
        }
    }
    println!("of {all} lengths");
    Ok(())
}

/// Every sector of every segment set to zeros, where something durable says that it was acknowledged: with CONTROL as it
/// is, and with CONTROL lost as well.
pub(crate) fn zeroed(_: u64, judged: &mut Judged) -> Verdict {
    for store in stores()? {
        for file in store.disk.files().iter().filter(|file| kind_of(file) == "segment") {
            let sectors = store
                .disk
                .contents(file)
                .unwrap()
                .chunks(512)
                .map(|sector| sector.iter().any(|b| *b > 0))
                .collect::<Vec<_>>();
            for (at, _) in (0u64..).step_by(512).zip(sectors).filter(|(_, written)| *written) {
                for control in [true, false] {
                    let proven = at < store.vouched(file) || control && store.left != Left::Cut;
                    if !proven {
                        continue;
                    }
                    let disk = store.disk.snapshot();
                    assert!(disk.zero(file, at..at + SECTOR));
                    assert!(control || disk.remove("CONTROL"));
                    *judged += 1;
                    judge(&disk, &store.model, file, usize::MAX, true).map_err(|why| {
                        format!("{}, {file} zeroed at {at}, CONTROL there {control}: {why}", store.name)
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// Bytes that no writer put there, behind the end of a closed log. Nothing is lost, and nothing that is written later
/// either: a power cut at every call of the next life, whose torn writes would leave them where zeros belong.
pub(crate) fn behind_the_end(seed: u64, judged: &mut Judged) -> Verdict {
    for store in stores()?.into_iter().filter(|store| store.left == Left::Closed) {
        let file = store.disk.files().into_iter().rfind(|file| kind_of(file) == "segment").unwrap();
        let bytes = store.disk.contents(&file).unwrap();
        let end = bytes.iter().rposition(|byte| *byte != 0).unwrap() as u64 + 1;
        for gap in [64, 512] {
            let disk = store.disk.snapshot();
            let from = (end + gap).next_multiple_of(8);
            assert!(disk.overwrite(&file, from, &[0xA5; 20_000]));
            let what = format!("{}, {file}: bytes from {from} on, behind the end at {end}", store.name);
            let model = Arc::new(Mutex::new(store.model.clone()));
            let (moments, known) = (Moments::default(), Arc::clone(&model));
            keep(&disk, Arc::clone(&moments), move || known.lock().unwrap().clone());
            let (opened, _) = fails(open(&disk, seed), &what)?;
            model.lock().unwrap().attempt_session("behind", Vec::new());
            let session = fails(opened.create(CreateOptions::new().id("behind")), &what)?;
            for seq in 0..4 {
                let (event, line) = event(seq, &"b".repeat(3000)).unwrap();
                model.lock().unwrap().attempt("behind", [line]);
                fails(session.append(event), &what)?;
                fails(session.flush(), &what)?;
                model.lock().unwrap().acknowledge("behind");
            }
            disk.clear_on_call();
            for moment in std::mem::take(&mut *moments.lock().unwrap()) {
                *judged += 1;
                let what = format!("{what}, cut at call {} ({:?})", moment.call, moment.op);
                survive(&moment.disk.crash(seed + moment.call), &moment.model, 1, &what)?;
            }
        }
    }
    Ok(())
}

/// Damage in the newest segment of a killed writer, found by a recovery that a power cut ends at each of its calls: every
/// later opening tells of it, and nothing more is lost, whatever was written down.
pub(crate) fn cut_recoveries(seed: u64, judged: &mut Judged) -> Verdict {
    for store in stores()?.into_iter().filter(|store| store.left == Left::Killed) {
        let file = store.disk.files().into_iter().rfind(|file| kind_of(file) == "segment").unwrap();
        let bytes = store.disk.contents(&file).unwrap();
        let last = bytes.windows(4).rposition(|window| window == b"\xFFSLF").unwrap() as u64;
        for (harm, from, to) in [("its last frame", last + 8, last + 16), ("its header", 0, SECTOR)] {
            let hurt = store.disk.snapshot();
            assert!(hurt.zero(&file, from..to));
            let what = format!("{}, {file}, {harm} hurt", store.name);
            let moments = Moments::default();
            let known = store.model.clone();
            keep(&hurt, Arc::clone(&moments), move || known.clone());
            let (opened, _) = fails(open(&hurt, seed), &what)?;
            let (report, lost) = (opened.recovery().clone(), look(&opened, &store.model).lost);
            // Behind the opening, too: what it wrote last is not synced yet.
            let session = fails(opened.create(CreateOptions::new().id("behind")), &what)?;
            fails(session.flush(), &what)?;
            drop(opened);
            hurt.clear_on_call();
            for moment in std::mem::take(&mut *moments.lock().unwrap()) {
                *judged += 1;
                let disk = moment.disk.crash(seed + moment.call);
                let what = format!("{what}, cut at call {} ({:?})", moment.call, moment.op);
                for opening in 0..2 {
                    let (opened, _) = fails(open(&disk, seed + opening), &what)?;
                    still_told(&report, opened.recovery()).map_err(|why| format!("{what}: {why}"))?;
                    let now = look(&opened, &store.model).lost;
                    let more = now.iter().find(|event| !lost.contains(event));
                    agrees(more.is_none(), || format!("{what}: {more:?} is lost as well"))?;
                }
            }
        }
    }
    Ok(())
}

/// LIVE as it was before it was told of damage is not believed.
pub(crate) fn older_live(seed: u64, judged: &mut Judged) -> Verdict {
    for store in stores()?.into_iter().filter(|store| store.left != Left::Cut) {
        let older = store.disk.contents("LIVE").unwrap();
        let disk = store.disk.snapshot();
        assert!(disk.zero("segments/00000001.seg", 1024..1536));
        let (opened, _) = fails(open(&disk, seed), store.name)?;
        let report = opened.recovery().clone();
        fails(opened.close(), store.name)?;
        disk.install("LIVE", &older);
        *judged += 1;
        let (opened, _) = fails(open(&disk, seed), store.name)?;
        still_told(&report, opened.recovery())
            .map_err(|why| format!("{}, an older LIVE: {why}", store.name))?;
    }
    Ok(())
}

/// Several segments with indexes: flips, cuts, files gone, first sectors gone.
pub(crate) fn rotated(_: u64, judged: &mut Judged) -> Verdict {
    let mut ops = vec![Op::Create, Op::Append(20), Op::Create];
    for _ in 0..16 {
        ops.extend([Op::Append(9000), Op::FlushAll, Op::Append(20), Op::Idle(30)]);
    }
    ops.extend([Op::FlushAll, Op::Idle(100), Op::FlushAll]);
    let store = small("rotated", Left::Closed, &ops)?;
    let segments = store.disk.files().iter().filter(|name| name.ends_with(".seg")).count();
    agrees(segments > 2, || format!("{:?}", store.disk.files()))?;
    let step = if rounds() > 1 { 59 } else { 9001 };
    for file in store.disk.files() {
        let segment = kind_of(&file) == "segment";
        let mut judged = |what: String, most: usize, deep: bool, harm: &dyn Fn(&SimDisk)| {
            let disk = store.disk.snapshot();
            harm(&disk);
            *judged += 1;
            judge(&disk, &store.model, &file, most, deep).map_err(|why| format!("{file} {what}: {why}"))
        };
        let length = store.disk.contents(&file).unwrap().len() as u64;
        let bits = bits(&store.disk, &file).into_iter().enumerate();
        let chosen = bits.filter(|(index, (at, _))| index % step == 0 || *at < 700 && index % 1543 == 0);
        for (index, (offset, bit)) in chosen {
            let what = format!("byte {offset} bit {bit}");
            judged(what, store.most(&file, offset), index.is_multiple_of(16), &|disk| {
                assert!(disk.flip(&file, offset, bit))
            })?;
        }
        for length in [0, 1, 511, 512, length / 2, length.saturating_sub(1)] {
            let most = if segment { store.reached_by_cut(&file, length) } else { 0 };
            judged(format!("cut at {length}"), most, true, &|disk| assert!(disk.truncate(&file, length)))?;
        }
        let most = if segment { usize::MAX } else { 0 };
        judged("removed".into(), most, true, &|disk| assert!(disk.remove(&file)))?;
        judged("first sector zeroed".into(), 0, true, &|disk| assert!(disk.zero(&file, 0..512)))?;
        // Of a segment: its header and the first frames.
        let most = store.most_of_front(&file, 4096);
        judged("first page zeroed".into(), most, true, &|disk| assert!(disk.zero(&file, 0..4096)))?;
    }
    Ok(())
}

#[test]
fn every_flipped_bit_is_noticed_or_harmless() {
    campaign(0, 1000, "flipped bits", flips);
    campaign(0, 100, "flipped bits behind a power cut", flips_behind_a_cut);
}

#[test]
fn every_file_may_be_cut_at_every_byte() {
    campaign(0, 300, "cuts", cuts);
}

#[test]
fn every_zeroed_sector_that_was_acknowledged_is_told() {
    campaign(0, 50, "zeroed sectors", zeroed);
}

#[test]
fn damage_in_a_store_of_several_segments_is_told_and_nothing_else_is_lost() {
    campaign(0, 100, "damages of several segments", rotated);
}

#[test]
fn bytes_behind_the_end_of_the_log_harm_nothing() {
    campaign(0, 60, "power cuts with bytes behind the end", behind_the_end);
}

#[test]
fn damage_that_a_cut_recovery_found_is_told_by_later_ones() {
    campaign(0, 60, "power cuts during recoveries from damage", cut_recoveries);
}

#[test]
fn an_older_live_set_does_not_make_damage_forgotten() {
    campaign(0, 4, "older live sets", older_live);
}
