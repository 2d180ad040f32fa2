//! Index frames (D1): a bad one costs time, and not the events that it tells of.

use std::sync::Arc;

use sessionlog::testing::workload::event;
use sessionlog::testing::{Model, SeededRuntime, SimDisk};
use sessionlog::{CreateOptions, SessionStore, StoreOptions};

use super::{Judged, Verdict, agrees, campaign, fails};

/// The kind of an index frame, and where it stands in a frame header.
const INDEX: u8 = 2;
const KIND_AT: usize = 6;
/// An index frame comes every 4 MiB.
const EVENTS: usize = 21;
const LENGTH: usize = 400 << 10;

fn open(disk: &SimDisk) -> sessionlog::Result<SessionStore> {
    let runtime = Arc::new(SeededRuntime::new(1));
    StoreOptions::new()
        .create(true)
        .segment_bytes(16 << 20)
        .disk(Arc::new(disk.clone()))
        .runtime(runtime)
        .open("")
}

/// One bit of each index frame of a killed writer's segment turned over: every event is there, or its loss is told.
pub(crate) fn bad_frames(_: u64, judged: &mut Judged) -> Verdict {
    let what = "index frames";
    let disk = SimDisk::new();
    let mut model = Model::default();
    let store = fails(open(&disk), what)?;
    for id in ["s", "t"] {
        model.attempt_session(id, Vec::new());
        let session = fails(store.create(CreateOptions::new().id(id)), what)?;
        for seq in 0..EVENTS / (1 + usize::from(id == "t") * 7) {
            let (event, line) = event(seq, &"y".repeat(LENGTH)).unwrap();
            model.attempt(id, [line]);
            while let Err(error) = session.append(event.clone()) {
                agrees(error.is_backpressure(), || format!("{what}: {error}"))?;
                fails(store.wait_for_room(LENGTH), what)?;
            }
            fails(session.flush(), what)?;
        }
    }
    model.acknowledge_all();
    let disk = disk.kill_writer().settled();
    let file = "segments/00000001.seg";
    let bytes = disk.contents(file).unwrap();
    let starts = bytes.windows(8).enumerate();
    let starts = starts.filter(|(_, window)| window.starts_with(b"\xFFSLF") && window[KIND_AT] == INDEX);
    let frames: Vec<u64> = starts.map(|(at, _)| at as u64).collect();
    agrees(frames.len() > 1, || format!("{what}: {frames:?}"))?;
    for at in frames {
        for offset in [at + 20, at + 80] {
            *judged += 1;
            let hurt = disk.snapshot();
            assert!(hurt.flip(file, offset, 3));
            let what = format!("the index frame at {at}, byte {offset} hurt");
            let store = fails(open(&hurt), &what)?;
            let told = !store.recovery().losses.is_empty();
            for (id, known) in &model.sessions {
                let count = store.open(id).map_or(0, |reader| reader.events().flatten().count());
                agrees(count == known.acknowledged, || {
                    format!(
                        "{what}: {count} events of {id}, {} acknowledged, told {told}",
                        known.acknowledged
                    )
                })?;
            }
        }
    }
    Ok(())
}

#[test]
fn a_bad_index_frame_costs_no_event() {
    campaign(0, 4, "bad index frames", bad_frames);
}
