//! What the decoders say of bytes, as JSON: what the manifest of the vectors holds.

use crate::format::constants::record_kind;
use crate::format::control::{Control, ControlSlot, State};
use crate::format::lsn::{Binding, Lsn};
use crate::format::meta::Meta;
use crate::format::record::{self, RecordView};
use crate::format::scan::{FrameStep, FrameView, ScanContext, is_zero, read_frame};
use crate::format::segment_header::{HeaderFault, SegmentHeader};
use crate::format::{LiveSet, LockInfo};
use serde_json::{Value, json};

/// The fields, or the text of the fault.
pub(super) type Described = Result<Value, String>;

pub(super) fn segment_header(bytes: &[u8]) -> Described {
    let (h, crc) = SegmentHeader::decode(bytes).map_err(|fault| fault.to_string())?;
    Ok(json!({
        "store": h.store.to_string(), "number": h.number, "previous": h.previous, "epoch": h.epoch,
        "salt": hex64(h.salt), "previous_end": h.previous_end, "previous_chain": hex32(h.previous_chain),
        "previous_ending": h.previous_why as u8, "next_dense": h.next_dense, "capacity": h.capacity,
        "padded": h.padded, "crc": hex32(crc),
    }))
}

pub(super) fn frame(bytes: &[u8], at: Lsn, ctx: &ScanContext) -> Described {
    match read_frame(bytes, at, ctx) {
        FrameStep::Frame(view) if view.is_intact() => Ok(frame_view(&view)),
        FrameStep::Frame(view) => Err(broken_frame(&view)),
        FrameStep::Bad(fault) => Err(fault.to_string()),
        FrameStep::NeedMore(need) => Err(format!("the frame takes {need} bytes")),
        FrameStep::Zero => Err("zero bytes".to_owned()),
        FrameStep::End => Err("no frame fits".to_owned()),
    }
}

fn broken_frame(view: &FrameView<'_>) -> String {
    let bad: Vec<_> = view.bad_ranges().iter().map(|(from, to)| format!("{from}..{to}")).collect();
    let zero = if view.has_zero_sector() { "a sector is zero" } else { "no sector is zero" };
    format!("not intact: bad bytes {}; {zero}", bad.join(", "))
}

fn frame_view(view: &FrameView<'_>) -> Value {
    let h = &view.header;
    let records: Vec<_> = view.records().map(|record| record_view(&record.unwrap())).collect();
    json!({
        "kind": h.kind, "header_len": h.header_len, "codec": h.codec, "key": h.key, "body_len": h.body_len,
        "pad_len": h.pad_len, "record_count": h.record_count, "table_len": h.table_len, "lsn": h.lsn.0,
        "epoch": h.epoch, "durable_up_to": h.durable.0, "chain": hex32(h.chain), "table_crc": hex32(h.table_crc),
        "records_crc": hex32(h.records_crc), "header_crc": hex32(view.crc), "end": view.end.0, "records": records,
    })
}

pub(super) fn record(bytes: &[u8], at: Lsn, binding: &Binding) -> Described {
    let view = record::decode(bytes, at, binding.epoch, binding.salt).map_err(|fault| fault.to_string())?;
    if view.stored_len != bytes.len() {
        return Err(format!("the record takes {} bytes", view.stored_len));
    }
    Ok(record_view(&view))
}

fn record_view(view: &RecordView<'_>) -> Value {
    let mut fields = match view.meta {
        Meta::Event(m) => json!({
            "dense": m.dense, "seq": m.seq, "coding": m.coding, "class": m.class, "time_ms": m.time_ms,
            "replace": m.replace.map(|(start, end)| [start, end]),
        }),
        Meta::Create(m) => json!({ "dense": m.dense, "staged": m.staged }),
        Meta::Fork(m) => json!({
            "dense": m.dense, "staged": m.staged, "parent": m.parent, "ancestor": m.ancestor, "cut": m.cut,
            "turn_open": m.turn_open,
        }),
        Meta::Delete(m) | Meta::Publish(m) => json!({ "dense": m.dense }),
        Meta::Damage(m) => json!({
            "segment": m.segment, "from": m.from, "to": m.to, "dense": m.dense, "from_seq": m.from_seq,
            "to_seq": m.to_seq,
        }),
        Meta::AcceptLoss(m) => json!({ "dense": m.dense, "next_seq": m.next_seq }),
        Meta::IndexPart(m) => json!({ "previous": m.previous }),
        Meta::Skipped { flags, .. } => json!({ "flags": flags }),
    };
    fields["kind"] = json!(view.meta.kind());
    fields["more"] = json!(view.meta.more());
    fields["lsn"] = json!(view.lsn.0);
    fields["stored_len"] = json!(view.stored_len);
    let event_or_text = view.meta.kind() != record_kind::INDEX_PART;
    match std::str::from_utf8(view.payload) {
        Ok(text) if event_or_text && !text.bytes().any(|b| b < 0x20) => fields["payload"] = json!(text),
        _ => fields["payload_hex"] = json!(hex(view.payload)),
    }
    fields
}

/// A whole segment file, read as one without a witness: header, frames, and what stands where no frame does.
pub(super) fn segment(bytes: &[u8]) -> Described {
    let header = segment_header(bytes)?;
    let (decoded, crc) = SegmentHeader::decode(bytes).map_err(|fault| fault.to_string())?;
    let limit = u32::try_from(bytes.len()).unwrap().min(decoded.capacity);
    let (mut at, mut chain, mut epoch, mut frames) = (SegmentHeader::LEN, crc, decoded.epoch, Vec::new());
    let stop = loop {
        let rest = &bytes[at as usize..];
        let ctx = ScanContext {
            binding: decoded.binding(),
            min_epoch: epoch,
            max_epoch: epoch + 1,
            chain: Some(chain),
            end_limit: limit,
        };
        match read_frame(rest, Lsn::new(decoded.number, at), &ctx) {
            FrameStep::Frame(view) if view.is_intact() => {
                frames.push(frame_view(&view));
                (at, chain, epoch) = (view.end.offset(), view.crc, view.header.epoch);
            }
            FrameStep::Frame(view) => break broken_frame(&view),
            FrameStep::Bad(fault) => break fault.to_string(),
            FrameStep::End | FrameStep::Zero if is_zero(rest) => break "zero to the end".to_owned(),
            FrameStep::Zero => break "zero, then other bytes".to_owned(),
            FrameStep::End | FrameStep::NeedMore(_) => break "the file ends".to_owned(),
        }
    };
    Ok(json!({ "header": header, "frames": frames, "end": at, "then": stop }))
}

pub(super) fn control(bytes: &[u8]) -> Described {
    let control = Control::decode(bytes);
    if let Some(fault) = control.unsupported() {
        return Err(fault.to_string());
    }
    let newest = control.newest().ok_or("no slot is valid")?;
    let slots: Vec<_> = control.slots.iter().map(slot).collect();
    Ok(json!({ "slots": slots, "newest_counter": newest.counter }))
}

fn slot(slot: &Result<ControlSlot, HeaderFault>) -> Value {
    match slot {
        Err(fault) => json!({ "fault": fault.to_string() }),
        Ok(s) => json!({
            "state": if s.state == State::Open { "open" } else { "closed" }, "store": s.store.to_string(),
            "epoch": s.epoch, "counter": s.counter, "durable": s.durable.0, "written": s.written.0,
            "live_version": s.live_version, "directory_to": s.directory_to.0, "last_index": s.last_index.0,
            "next_dense": s.next_dense, "active_salt": hex64(s.active_salt), "active_epoch": s.active_epoch,
            "active": s.active,
        }),
    }
}

pub(super) fn live(bytes: &[u8]) -> Described {
    let set = LiveSet::decode(bytes).map_err(|fault| fault.to_string())?;
    let entries: Vec<_> =
        set.entries.iter().map(|e| json!([e.number, e.state as u8, e.replacement])).collect();
    let damage: Vec<_> =
        set.damage.iter().map(|d| json!([d.segment, d.from, d.to, d.reason as u32])).collect();
    Ok(json!({
        "store": set.store.to_string(), "version": set.version, "through": set.through, "entries": entries,
        "damage": damage,
    }))
}

pub(super) fn lock(bytes: &[u8]) -> Described {
    let text = std::str::from_utf8(bytes).map_err(|e| e.to_string())?;
    let info = LockInfo::parse(text).ok_or("no information")?;
    Ok(json!({ "pid": info.pid, "host": info.host }))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex32(value: u32) -> String {
    format!("0x{value:08x}")
}

fn hex64(value: u64) -> String {
    format!("0x{value:016x}")
}
