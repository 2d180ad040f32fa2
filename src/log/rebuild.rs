//! Rebuilding what is derived from a segment: its table (and so its index) from its frames, and its header from
//! one with a single flipped bit.

use crate::error::{Error, ErrorKind, Result};
use crate::format::checksum::flipped_bit;
use crate::format::constants::SEGMENT_HEADER_LEN;
use crate::format::index::{Damaged, SegmentTable, TableEvent};
use crate::format::meta::Meta;
use crate::format::record::RecordView;
use crate::format::scan::FrameView;
use crate::format::segment_header::{Ending, HeaderFault, SegmentHeader};

use super::notes::note_of;
use super::scan::{BadSpot, Found, Reason, ScanPlan, scan};
use super::segments::{EndOf, SegmentFacts};
use super::shared::Shared;
use super::types::Note;

/// The table of an ended segment, read from its frames. Damage is named in it, and leaves holes.
///
/// # Errors
/// The file is missing or of a version that this build does not read.
pub(crate) fn table(shared: &Shared, facts: &SegmentFacts) -> Result<SegmentTable> {
    let mut table = SegmentTable::new(facts.key());
    let file = shared.files.readable(facts.header.number)?;
    scan(file, &plan(facts), &mut |found| {
        match found {
            Found::Frame(view) => {
                for spot in feed(&mut table, view) {
                    table.add_damage(damaged(&spot));
                }
            }
            Found::Bad(spot) => table.add_damage(damaged(&spot)),
        }
        Ok(())
    })?;
    link(shared, &mut table, facts.header.number);
    Ok(table)
}

/// How to scan an ended segment.
pub(crate) fn plan(facts: &SegmentFacts) -> ScanPlan {
    ScanPlan {
        number: facts.header.number,
        binding: facts.binding(),
        capacity: facts.header.capacity,
        max_epoch: u64::MAX,
        from: crate::format::constants::FIRST_FRAME,
        chain: facts.header_crc,
        epoch: facts.header.epoch,
        end: Some(facts.end.end),
        durable: facts.end.end,
        stop: None,
    }
}

/// Where a segment ends by its frames alone.
///
/// # Errors
/// The file cannot be opened, or is of another version.
pub(crate) fn end(shared: &Shared, header: &SegmentHeader, header_crc: u32) -> Result<EndOf> {
    let facts = SegmentFacts {
        header: *header,
        header_crc,
        end: EndOf { end: header.capacity, chain: 0, why: Ending::Damaged },
    };
    let plan = ScanPlan { end: None, durable: 0, ..plan(&facts) };
    let end = scan(shared.files.readable(header.number)?, &plan, &mut |_| Ok(()))?;
    let why = if end.sealed { Ending::Sealed } else { Ending::Damaged };
    Ok(EndOf { end: end.end, chain: end.chain, why })
}

pub(crate) fn damaged(spot: &BadSpot) -> Damaged {
    Damaged { from: spot.from, to: spot.to.max(spot.from.saturating_add(1)) }
}

/// Puts a frame's records into a table. The answer is the records that it cannot hold: their checksum passed and no
/// writer makes them, so they count as damage of their place, and a store with one still opens.
pub(crate) fn feed(table: &mut SegmentTable, view: &FrameView<'_>) -> Vec<BadSpot> {
    let mut refused = Vec::new();
    for record in view.records().flatten() {
        let offset = record.lsn.offset();
        let taken = match note_of(&record) {
            Ok(Some(Note::Event { dense, seq, class, op, time_ms })) => {
                let event =
                    TableEvent { dense, seq, offset, class, op, time_ms, bytes: record.stored_len as u64 };
                table.add_event(&event).map(drop).map_err(|fault| fault.to_string())
            }
            Ok(Some(_)) => {
                table.add_control(offset);
                Ok(())
            }
            Ok(None) => {
                if let Meta::Damage(_) = record.meta {
                    table.add_control(offset);
                }
                Ok(())
            }
            Err(why) => Err(why),
        };
        if let Err(why) = taken {
            let spot = refused_record(&record);
            tracing::error!(segment = spot.segment, offset, %why, "a record that no writer makes");
            refused.push(spot);
        }
    }
    refused
}

/// The place of a record that cannot be taken.
pub(crate) fn refused_record(record: &RecordView<'_>) -> BadSpot {
    let from = record.lsn.offset();
    let to = from.saturating_add(u32::try_from(record.stored_len).unwrap_or(u32::MAX));
    BadSpot { segment: record.lsn.segment(), from, to, reason: Reason::Unexpected }
}

/// Sets the links to earlier segments. A link is an upper bound: readers go on downwards from there.
fn link(shared: &Shared, table: &mut SegmentTable, number: u32) {
    if let Some(before) = shared.segments.read().before(number) {
        table.set_all_prev(before);
    }
}

/// A segment header; one with a single flipped bit is repaired in memory (its CRC tells which bit), which the third
/// value says.
///
/// # Errors
/// Another version or feature (refused by name), or damage beyond a bit.
pub(crate) fn decode_header(bytes: &[u8], name: &str) -> Result<(SegmentHeader, u32, bool)> {
    match SegmentHeader::decode(bytes) {
        Ok((header, crc)) => Ok((header, crc, false)),
        // A flipped bit may look like another version: repaired bytes decide.
        Err(fault) => {
            if let Some((header, crc)) = repair_header(bytes) {
                return Ok((header, crc, true));
            }
            Err(refuse(fault, name))
        }
    }
}

fn refuse(fault: HeaderFault, name: &str) -> Error {
    if fault.is_unsupported() {
        return Error::new(
            ErrorKind::Version,
            format!("{name}: {fault}; it was left untouched, use a newer sessionlog"),
        );
    }
    Error::corrupt(name, 0, fault)
}

fn repair_header(bytes: &[u8]) -> Option<(SegmentHeader, u32)> {
    let mut copy: [u8; SEGMENT_HEADER_LEN] = bytes.get(..SEGMENT_HEADER_LEN)?.try_into().ok()?;
    let (covered, stored) = copy.split_last_chunk::<4>()?;
    let bit = flipped_bit(covered, u32::from_le_bytes(*stored))?;
    *copy.get_mut(bit / 8)? ^= 1 << (bit % 8);
    SegmentHeader::decode(&copy).ok()
}
