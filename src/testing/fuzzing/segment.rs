//! Segment files: the scanner, and the index that is built from what it finds.

use super::forge::{self, BINDING, Mend};
use super::index;
use super::input::Input;
use crate::disk::{Disk, OpenMode};
use crate::format::index::{IndexFile, SegmentKey, SegmentTable};
use crate::format::{Ending, FIRST_FRAME, SegmentHeader, names};
use crate::log::rebuild::{damaged, feed};
use crate::log::scan::{Found, ScanPlan, scan};
use crate::testing::SimDisk;

/// A segment file: checksums to mend u8, what is known of it u8 (bit 0: its end, bit 1: where to stop, bit 2: what is
/// durable, bit 3: the highest epoch), these three u16, the file.
pub fn segment_scan(input: &[u8]) {
    let mut input = Input::new(input);
    let (mend, known) = (Mend(input.u8()), input.u8());
    let (end, stop, durable) = (input.u16(), input.u16(), input.u16());
    let mut bytes = input.rest().to_vec();
    forge::segment(&mut bytes, mend);
    let (header, header_crc) = SegmentHeader::decode(&bytes).unwrap_or((fallback(), 7));
    let given = |bit: u8, value: u16| (known & bit != 0).then_some(u32::from(value));
    let plan = ScanPlan {
        number: header.number,
        binding: header.binding(),
        capacity: header.capacity,
        max_epoch: if known & 8 != 0 { header.epoch } else { u64::MAX },
        from: FIRST_FRAME,
        chain: header_crc,
        epoch: header.epoch,
        end: given(1, end),
        durable: given(4, durable).unwrap_or(0),
        stop: given(2, stop),
    };
    let disk = SimDisk::new();
    disk.install(&names::segment(header.number), &bytes);
    let file = disk.open(&names::segment(header.number), OpenMode::Read).expect("it was put there");
    let key = SegmentKey { store: header.store, segment: header.number, salt: header.salt };
    let (mut table, mut last) = (SegmentTable::new(key), FIRST_FRAME);
    let found = scan(file, &plan, &mut |found| {
        match found {
            Found::Frame(view) => {
                assert!(view.header.lsn.offset() >= last, "frames follow each other");
                last = view.end.offset();
                for spot in feed(&mut table, view) {
                    table.add_damage(damaged(&spot));
                }
            }
            Found::Bad(spot) => {
                assert!(spot.from <= spot.to, "damage has a length");
                table.add_damage(damaged(&spot));
            }
        }
        Ok(())
    });
    let Ok(end) = found else { return };
    assert!(end.end >= plan.from && end.residue_end >= end.end && last <= end.end.max(plan.from));
    let file = table.to_index(end.end, end.chain, Ending::Sealed);
    let open = IndexFile::open(file.as_slice(), &key).expect("what a table writes opens");
    open.verify().expect("what a table writes is sound");
    index::look_through(&open);
}

fn fallback() -> SegmentHeader {
    SegmentHeader {
        store: BINDING.store,
        number: forge::SEGMENT,
        previous: 0,
        epoch: BINDING.epoch,
        salt: BINDING.salt,
        previous_end: 0,
        previous_chain: 0,
        previous_why: Ending::None,
        next_dense: 1,
        capacity: 1 << 20,
        padded: false,
    }
}
