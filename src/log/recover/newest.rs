//! The newest segment: its header, its table and where it ends.

use crate::error::Result;
use crate::format::index::SegmentTable;
use crate::format::{ControlSlot, SegmentHeader};

use crate::log::rebuild::{damaged, feed};
use crate::log::scan::{BadSpot, Found, Reason, ScanEnd, ScanPlan, add_spot, scan};
use crate::log::shared::Shared;
use crate::log::{header, index_frames};

/// The newest segment after scanning.
pub(crate) struct Newest {
    pub header: SegmentHeader,
    pub header_crc: u32,
    pub table: SegmentTable,
    /// The newest index frame that was used, and where the scan began.
    pub index_at: u32,
    pub index_from: u32,
    pub end: ScanEnd,
    pub bad: Vec<BadSpot>,
}

/// Scans the newest segment from its header on.
///
/// # Errors
/// Its header is damaged beyond repair, it is of another version, or it cannot be opened.
pub(crate) fn scan_newest(shared: &Shared, number: u32, control: ControlSlot) -> Result<Newest> {
    let mut bad = Vec::new();
    let (header, header_crc, hurt) = header::read(shared, number, &control)?;
    let file = shared.files.readable(number)?;
    if hurt {
        bad.push(BadSpot { segment: number, from: 0, to: 512, reason: Reason::Header });
    }
    let durable = if control.store == header.store && control.durable.segment() == number {
        control.durable.offset()
    } else {
        0
    };
    let indexed = index_frames::load_or_begin(file.as_ref(), &header, header_crc, &control);
    let plan = ScanPlan {
        number,
        binding: header.binding(),
        capacity: header.capacity,
        max_epoch: u64::MAX,
        from: indexed.from,
        chain: indexed.chain,
        epoch: indexed.epoch,
        end: None,
        durable,
        stop: None,
    };
    let mut table = indexed.table;
    let mut end = scan(file, &plan, &mut |found| {
        match found {
            Found::Frame(view) => {
                for spot in feed(&mut table, view) {
                    table.add_damage(damaged(&spot));
                    add_spot(&mut bad, spot);
                }
            }
            Found::Bad(spot) => {
                table.add_damage(damaged(&spot));
                add_spot(&mut bad, spot);
            }
        }
        Ok(())
    })?;
    // Without the prepared zeros behind the end: they are no part of the log.
    end.bytes_read = indexed.bytes.saturating_add(u64::from(end.end.saturating_sub(indexed.from)));
    Ok(Newest { header, header_crc, table, index_at: indexed.at, index_from: indexed.from, end, bad })
}
