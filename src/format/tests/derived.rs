//! Golden vectors of what is derived or packed: read as their manifest says, written again byte for byte.

use super::derived_samples::{Kind, Vector, all};
use super::samples::Verdict;
use super::{blessing, spec_path};
use crate::event::Class;
use crate::format::directory::tests::sample_key;
use crate::format::directory::{RunBuilder, RunFile};
use crate::format::index::part::{self, PartSession};
use crate::format::index::tests::key;
use crate::format::index::{HOLE, IndexFile, SegmentTable, StructureEntry, TableEvent};
use crate::format::payload::{self, Parts};
use serde_json::{Value, json};
use std::fs;

fn describe(kind: &Kind, bytes: &[u8]) -> Result<Value, String> {
    match kind {
        Kind::Payload(meta) => {
            let event = payload::decode(meta, bytes)?;
            Ok(json!({ "line": event.to_line() }))
        }
        Kind::Session => {
            let (id, header) = payload::decode_session(bytes)?;
            Ok(json!({ "id": id, "header": header }))
        }
        Kind::Part => {
            let part = part::decode(bytes).map_err(|fault| fault.to_string())?;
            let sessions: Vec<_> = part.sessions.iter().map(session).collect();
            Ok(json!({ "sessions": sessions, "controls": part.controls }))
        }
        Kind::Index => index(bytes),
        Kind::Run => run(bytes),
    }
}

fn index(bytes: &[u8]) -> Result<Value, String> {
    let file = IndexFile::open(bytes, &key()).map_err(|fault| fault.to_string())?;
    file.verify().map_err(|fault| fault.to_string())?;
    let info = file.info();
    let damage: Vec<_> = file.damage().unwrap().map(|d| [d.from, d.to]).collect();
    Ok(json!({
        "end": info.end, "chain": format!("0x{:08x}", info.chain), "ending": info.why_ended as u8,
        "sessions": held(&file).iter().map(session).collect::<Vec<_>>(),
        "controls": file.controls().unwrap().collect::<Vec<_>>(), "damage": damage,
    }))
}

/// The sessions of an index file in the form of a part.
fn held(file: &IndexFile<&[u8]>) -> Vec<PartSession> {
    let session = |head: crate::format::index::SessionPart| PartSession {
        head,
        offsets: file.offsets(&head, 0..head.count).unwrap().collect(),
        structure: file.structure(&head).unwrap().collect::<Result<_, _>>().unwrap(),
    };
    file.sessions().map(|head| session(head.unwrap())).collect()
}

fn session(part: &PartSession) -> Value {
    let head = part.head;
    let structure = |e: &StructureEntry| {
        let op = e.op.map(|op| op.to_string());
        json!({ "seq": e.seq, "offset": e.offset, "class": e.class as u8, "surface_op": op })
    };
    json!({
        "dense": head.dense, "first_seq": head.first_seq, "bytes": head.bytes, "first_time": head.first_time,
        "last_time": head.last_time, "previous_segment": head.prev_segment, "open_turn": head.open_turn,
        "turn_boundary": head.has_turn_boundary, "holes": head.has_holes, "offsets": part.offsets,
        "structure": part.structure.iter().map(structure).collect::<Vec<_>>(),
    })
}

fn run(bytes: &[u8]) -> Result<Value, String> {
    let file = RunFile::open(bytes, &sample_key()).map_err(|fault| fault.to_string())?;
    file.verify().map_err(|fault| fault.to_string())?;
    let entries: Vec<_> = file
        .entries()
        .map(|entry| {
            let e = entry.unwrap();
            json!({
                "dense": e.dense, "id": &*e.id, "header": &*e.header_json, "deleted": e.deleted, "staged": e.staged,
                "open_turn": e.open_turn, "damaged": e.damaged, "last_segment": e.last_segment,
                "own_first": e.own_first, "next_seq": e.next_seq, "bytes": e.bytes, "first_time": e.first_time,
                "last_time": e.last_time, "fork": e.fork.map(|f| [f.parent, f.ancestor, f.cut]),
                "damage_from": e.damage_from, "accepted": e.accepted, "children": file.children(e.dense).unwrap(),
            })
        })
        .collect();
    Ok(json!({ "next_dense": file.info().next_dense, "entries": entries }))
}

fn file_name(vector: &Vector) -> String {
    format!("{}.bin", vector.name)
}

fn entry(vector: &Vector) -> Value {
    let segment = || {
        let key = key();
        json!({ "store": key.store.to_string(), "segment": key.segment, "salt": format!("0x{:016x}", key.salt) })
    };
    let (kind, context) = match &vector.kind {
        Kind::Payload(m) => {
            let context = json!({
                "coding": m.coding, "class": m.class, "seq": m.seq, "time_ms": m.time_ms,
                "replace": m.replace.map(|(start, end)| [start, end]),
            });
            ("payload", context)
        }
        Kind::Session => ("session payload", Value::Null),
        Kind::Part => ("index part", Value::Null),
        Kind::Index => ("index file", segment()),
        Kind::Run => {
            let key = sample_key();
            let context = json!({ "store": key.store.to_string(), "from": key.from.0, "to": key.to.0 });
            ("directory run", context)
        }
    };
    let verdict = match vector.verdict {
        Verdict::Good => "good",
        Verdict::Refused => "refused",
        Verdict::Torn | Verdict::Damaged => "damaged",
    };
    let mut entry = json!({ "file": file_name(vector), "kind": kind, "verdict": verdict });
    if !context.is_null() {
        entry["context"] = context;
    }
    match describe(&vector.kind, &vector.bytes) {
        Ok(fields) => entry["fields"] = fields,
        Err(fault) => entry["fault"] = json!(fault),
    }
    entry
}

#[test]
fn files_and_manifest_are_what_the_code_writes_and_reads() {
    let vectors = all();
    let manifest = json!({
        "about": "see README.md; payloads, index and directory",
        "vectors": vectors.iter().map(entry).collect::<Vec<_>>(),
    });
    let path = spec_path("vectors/manifest-derived.json");
    if blessing() {
        for vector in &vectors {
            fs::write(spec_path("vectors").join(file_name(vector)), &vector.bytes).unwrap();
        }
        fs::write(&path, serde_json::to_string_pretty(&manifest).unwrap() + "\n").unwrap();
    }
    let written: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    for (vector, entry) in vectors.iter().zip(written["vectors"].as_array().unwrap()) {
        let file = fs::read(spec_path("vectors").join(file_name(vector))).unwrap();
        assert!(file == vector.bytes, "{}: the encoders give other bytes than the file holds", vector.name);
        let read = describe(&vector.kind, &file);
        assert_eq!(read.as_ref().ok(), entry.get("fields"), "{}", vector.name);
        assert_eq!(read.err().map(Value::from).as_ref(), entry.get("fault"), "{}", vector.name);
        assert_eq!(entry["verdict"] == "good", entry.get("fields").is_some(), "{}", vector.name);
    }
    assert_eq!(written, manifest);
}

/// A table that was given the events of `sessions` one by one, in the order of the segment.
fn replayed(sessions: &[PartSession], controls: impl IntoIterator<Item = u32>) -> SegmentTable {
    let mut events: Vec<TableEvent> = Vec::new();
    for part in sessions {
        let head = part.head;
        let found = (head.first_seq..).zip(&part.offsets).filter(|(_, offset)| **offset != HOLE);
        for (i, (seq, &offset)) in found.enumerate() {
            let entry = part.structure.iter().find(|e| e.seq == seq);
            let time_ms = if seq + 1 == head.end_seq() && i > 0 { head.last_time } else { head.first_time };
            let bytes = if i == 0 { head.bytes } else { 0 };
            let (class, op) = entry.map_or((Class::Chunk, None), |e| (e.class, e.op));
            events.push(TableEvent { dense: head.dense, seq, offset, class, op, time_ms, bytes });
        }
    }
    events.sort_unstable_by_key(|event| event.offset);
    let mut table = SegmentTable::new(key());
    for event in &events {
        table.add_event(event).unwrap();
    }
    sessions.iter().for_each(|s| table.set_prev(s.head.dense, s.head.prev_segment));
    controls.into_iter().for_each(|offset| table.add_control(offset));
    table
}

fn encoded_again(vector: &Vector) -> Vec<u8> {
    let bytes = vector.bytes.as_slice();
    let mut out = Vec::new();
    match &vector.kind {
        Kind::Payload(meta) => {
            let event = payload::decode(meta, bytes).unwrap();
            let again =
                payload::encode(&Parts::of_event(&event), &mut out).meta(meta.dense, meta.seq, meta.more);
            assert_eq!(again, *meta, "{}", vector.name);
        }
        Kind::Session => {
            let (id, header) = payload::decode_session(bytes).unwrap();
            payload::encode_session(&id, header, &mut out);
        }
        Kind::Part => {
            let part = part::decode(bytes).unwrap();
            out = replayed(&part.sessions, part.controls).encode_part();
        }
        Kind::Index => {
            let file = IndexFile::open(bytes, &key()).unwrap();
            let mut table = replayed(&held(&file), file.controls().unwrap());
            file.damage().unwrap().for_each(|range| table.add_damage(range));
            let info = file.info();
            out = table.to_index(info.end, info.chain, info.why_ended);
        }
        Kind::Run => {
            let file = RunFile::open(bytes, &sample_key()).unwrap();
            let mut builder = RunBuilder::new(sample_key(), file.info().next_dense);
            file.entries().for_each(|entry| builder.push(&entry.unwrap()));
            out = builder.finish();
        }
    }
    out
}

#[test]
fn good_vectors_come_back_byte_for_byte() {
    for vector in all().iter().filter(|vector| vector.verdict == Verdict::Good) {
        assert!(encoded_again(vector) == vector.bytes, "{}", vector.name);
    }
}
