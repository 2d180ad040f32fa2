//! Bytes of another time or place (G3): one leg of a mirror that was left behind and is read now and then, and writes that
//! went to the wrong place.
//!
//! Both legs begin alike. Then a writer goes on with one of them, and later one with the other: the same store and
//! segment, valid frames at the same places, of different histories.

use std::sync::Arc;

use sessionlog::testing::oracle::look;
use sessionlog::testing::workload::{event, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk};
use sessionlog::{CreateOptions, SessionStore};

use super::{Judged, Verdict, agrees, campaign, fails};

/// Frames are padded to pages, so that the legs' frames stand at the same places, and a page is what a mirror gives.
const PAGE: usize = 4096;

/// A store as its driver knows it.
struct Leg {
    disk: SimDisk,
    model: Model,
}

impl Leg {
    fn opened(&mut self, what: &str, seed: u64) -> Result<SessionStore, String> {
        open(&self.disk, seed, what)
    }

    /// One life: these texts, each flushed, by a writer that is then killed.
    fn live(&mut self, seed: u64, texts: &[String]) -> Verdict {
        let what = "a life of one leg";
        let store = self.opened(what, seed)?;
        let session = fails(store.resume("s"), what)?.session;
        for text in texts {
            let (event, line) = event(usize::try_from(session.seq()).unwrap(), text).unwrap();
            self.model.attempt("s", [line]);
            fails(session.append(event), what)?;
            fails(session.flush(), what)?;
            self.model.acknowledge("s");
        }
        self.disk = self.disk.kill_writer();
        Ok(())
    }

    /// A life in which nothing happens.
    fn idle(&mut self, seed: u64) -> Verdict {
        let what = "an idle life of one leg";
        fails(self.opened(what, seed)?.close(), what)
    }

    fn copy(&self) -> Self {
        Self { disk: self.disk.settled(), model: self.model.clone() }
    }

    fn bytes(&self, file: &str) -> Vec<u8> {
        self.disk.contents(file).unwrap_or_default()
    }
}

fn open(disk: &SimDisk, seed: u64, what: &str) -> Result<SessionStore, String> {
    let runtime = Arc::new(SeededRuntime::new(seed));
    fails(options(disk, &runtime).create(true).padded(true).open(""), what)
}

fn base(closed: bool) -> Result<Leg, String> {
    let what = "both legs";
    let mut leg = Leg { disk: SimDisk::new(), model: Model::default() };
    let store = leg.opened(what, 3)?;
    leg.model.attempt_session("s", Vec::new());
    let session = fails(store.create(CreateOptions::new().id("s")), what)?;
    let (event, line) = event(0, "the beginning").unwrap();
    leg.model.attempt("s", [line]);
    fails(session.append(event), what)?;
    fails(store.flush(), what)?;
    leg.model.acknowledge_all();
    if closed {
        fails(store.close(), what)?;
    }
    leg.disk = leg.disk.kill_writer();
    Ok(leg)
}

/// Whatever is wrong or lost is told. With `strict`, nothing wrong is handed out at all.
fn judge(disk: &SimDisk, model: &Model, strict: bool) -> Verdict {
    for seed in [5, 6] {
        let store = open(disk, seed, "it does not open")?;
        let sight = look(&store, model);
        let reported = !store.recovery().losses.is_empty();
        let silent = !sight.wrong.is_empty() && !reported || !sight.lost.is_empty() && sight.told.is_empty();
        agrees(!silent, || format!("without a word: wrong {:?}, lost {:?}", sight.wrong, sight.lost))?;
        agrees(!strict || sight.wrong.is_empty(), || format!("wrong data: {:?}", sight.wrong))?;
    }
    Ok(())
}

/// Where frames begin in a segment.
fn frames(bytes: &[u8]) -> Vec<usize> {
    let starts = bytes.windows(4).enumerate().filter(|(_, window)| *window == b"\xFFSLF");
    starts.map(|(at, _)| at).collect()
}

/// Behind the last frame: a frame ends with its pad or its table, never with a zero.
fn end(bytes: &[u8]) -> usize {
    bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| (last + 1).next_multiple_of(8))
}

/// Reads of `file` come from the other leg where they differ: in one page, and from one page on.
fn mixed(good: &Leg, stale: &Leg, file: &str, judged: &mut Judged) -> Verdict {
    let (ours, theirs) = (good.bytes(file), stale.bytes(file));
    let common = ours.len().min(theirs.len()) / PAGE * PAGE;
    let differ = (0..common).step_by(PAGE).filter(|at| ours[*at..at + PAGE] != theirs[*at..at + PAGE]);
    for (index, from) in differ.enumerate() {
        // All of the other leg is whole, too: nothing in it could tell.
        for to in [Some(from + PAGE), (index > 0).then_some(common)].into_iter().flatten() {
            let disk = good.disk.settled();
            disk.overwrite(file, from as u64, &theirs[from..to]);
            *judged += 1;
            judge(&disk, &good.model, false)
                .map_err(|why| format!("{file} from the other leg at {from}..{to}: {why}"))?;
        }
    }
    Ok(())
}

fn texts(leg: &str) -> Vec<String> {
    (0..9).map(|number| format!("{leg} {number}")).collect()
}

/// Both legs went on in one segment: each frame has its alternative.
pub(crate) fn alternatives(_: u64, judged: &mut Judged) -> Verdict {
    let base = base(true)?;
    let (mut good, mut stale) = (base.copy(), base.copy());
    stale.live(7, &texts("other"))?;
    good.live(7, &texts("good"))?;
    mixed(&good, &stale, "segments/00000001.seg", judged)
}

/// Each leg has made the second segment itself, with a salt of its own.
pub(crate) fn segments(_: u64, judged: &mut Judged) -> Verdict {
    let base = base(false)?;
    let (mut good, mut stale) = (base.copy(), base.copy());
    stale.live(7, &texts("other"))?;
    good.live(8, &texts("good"))?;
    mixed(&good, &stale, "segments/00000002.seg", judged)
}

/// The stale leg has frames of an epoch that is over where the log of the other one has ended.
pub(crate) fn stale_epochs(_: u64, judged: &mut Judged) -> Verdict {
    let file = "segments/00000001.seg";
    let base = base(true)?;
    let (mut good, mut stale) = (base.copy(), base.copy());
    (1..4).try_for_each(|seed| good.idle(seed))?;
    good.live(4, &["good".to_owned()])?;
    stale.live(9, &texts("resurrected"))?;
    let (end, theirs) = (end(&good.bytes(file)).next_multiple_of(PAGE), stale.bytes(file));
    let left = frames(&theirs).into_iter().filter(|at| *at >= end).count();
    agrees(left > 1, || format!("only {left} frames behind {end}"))?;
    for to in [end + PAGE, theirs.len() / PAGE * PAGE] {
        let disk = good.disk.settled();
        disk.overwrite(file, end as u64, &theirs[end..to]);
        *judged += 1;
        judge(&disk, &good.model, true)
            .map_err(|why| format!("a stale leg's frames at {end}..{to}: {why}"))?;
    }
    Ok(())
}

/// A store of small frames, one a page.
fn small_frames() -> Result<Leg, String> {
    let what = "small frames";
    let mut leg = Leg { disk: SimDisk::new(), model: Model::default() };
    let store = leg.opened(what, 4)?;
    for id in ["first", "other", "third"] {
        leg.model.attempt_session(id, Vec::new());
        let session = fails(store.create(CreateOptions::new().id(id)), what)?;
        fails(store.flush(), what)?;
        for seq in 0..2 {
            let (event, line) = event(seq, &format!("{seq} of {id}")).unwrap();
            leg.model.attempt(id, [line]);
            fails(session.append(event), what)?;
            fails(session.flush(), what)?;
        }
    }
    leg.model.acknowledge_all();
    leg.disk = leg.disk.kill_writer();
    Ok(leg)
}

/// Each frame copied over each other one, and behind the last one.
pub(crate) fn misdirected(_: u64, judged: &mut Judged) -> Verdict {
    copied(&small_frames()?, judged)
}

/// The same in a segment that has ended and has its index: its frames are not read again, and readers go by the index.
pub(crate) fn misdirected_records(_: u64, judged: &mut Judged) -> Verdict {
    let mut leg = small_frames()?;
    leg.idle(5)?;
    leg.idle(6)?;
    let indexed = leg.disk.files().iter().any(|file| file.ends_with("1.idx"));
    agrees(indexed, || format!("no index: {:?}", leg.disk.files()))?;
    copied(&leg, judged)
}

fn copied(leg: &Leg, judged: &mut Judged) -> Verdict {
    let file = "segments/00000001.seg";
    let bytes = leg.bytes(file);
    // The first frame begins in the page of the header.
    let starts: Vec<usize> = frames(&bytes).into_iter().skip(1).collect();
    let behind = end(&bytes).next_multiple_of(PAGE);
    for from in starts.iter().filter(|from| **from + PAGE <= bytes.len()) {
        for target in starts.iter().copied().filter(|at| at != from).chain([behind]) {
            let disk = leg.disk.settled();
            disk.overwrite(file, target as u64, &bytes[*from..from + PAGE]);
            *judged += 1;
            judge(&disk, &leg.model, true)
                .map_err(|why| format!("the frame at {from} copied to {target}: {why}"))?;
        }
    }
    Ok(())
}

#[test]
fn sectors_of_a_mirror_that_went_its_own_way_are_told() {
    campaign(0, 6, "sectors of another history", alternatives);
    campaign(0, 6, "sectors of another segment", segments);
}

#[test]
fn frames_of_an_epoch_that_is_over_do_not_come_back() {
    campaign(0, 2, "stale frames behind the end", stale_epochs);
}

#[test]
fn a_frame_in_another_ones_place_is_told() {
    campaign(0, 20, "misdirected frames", misdirected);
    campaign(0, 20, "misdirected records", misdirected_records);
}
