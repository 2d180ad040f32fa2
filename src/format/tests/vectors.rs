//! Golden vectors: every file is what the encoders give, is read as the manifest says, and notices every flipped bit.

use super::samples::{BINDING, Kind, STORE, Vector, Verdict, all};
use super::{blessing, spec_path};
use crate::format::control::{CONTROL_LEN, Control};
use crate::format::frame_builder::FrameBuilder;
use crate::format::live::LiveSet;
use crate::format::lock_info::LockInfo;
use crate::format::record::{self, RecordDraft};
use crate::format::scan::{FrameStep, read_frame};
use crate::format::segment_header::SegmentHeader;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;

fn file_name(vector: &Vector) -> String {
    format!("{}.bin", vector.name)
}

/// The vector's entry in the manifest.
fn entry(vector: &Vector) -> Value {
    let (kind, context) = match &vector.kind {
        Kind::SegmentHeader => ("segment header", Value::Null),
        Kind::Segment => ("segment", Value::Null),
        Kind::Frame(ctx) => (
            "frame",
            json!({
                "lowest_epoch": ctx.min_epoch, "highest_epoch": ctx.max_epoch, "end_limit": ctx.end_limit,
                "chain": ctx.chain.map(|chain| format!("0x{chain:08x}")),
            }),
        ),
        Kind::Record => ("record", Value::Null),
        Kind::Control => ("CONTROL", Value::Null),
        Kind::Live => ("LIVE", Value::Null),
        Kind::Lock => ("LOCK", Value::Null),
    };
    let verdict = match vector.verdict {
        Verdict::Good => "good",
        Verdict::Torn => "torn",
        Verdict::Damaged => "damaged",
        Verdict::Refused => "refused",
    };
    let mut entry = json!({ "file": file_name(vector), "kind": kind, "verdict": verdict });
    if !vector.at.is_none() {
        entry["at"] = json!(vector.at.0);
        entry["binding"] = json!({
            "store": STORE.to_string(), "salt": format!("0x{:016x}", BINDING.salt), "epoch": BINDING.epoch,
        });
    }
    if !context.is_null() {
        entry["context"] = context;
    }
    match vector.describe(&vector.bytes) {
        Ok(fields) => entry["fields"] = fields,
        Err(fault) => entry["fault"] = json!(fault),
    }
    entry
}

#[test]
fn files_and_manifest_are_what_the_code_writes_and_reads() {
    let vectors = all();
    let manifest = json!({
        "about": "see README.md; numbers are decimal, salts and checksums hexadecimal, an LSN is segment * 2^32 + offset",
        "vectors": vectors.iter().map(entry).collect::<Vec<_>>(),
    });
    if blessing() {
        for vector in &vectors {
            fs::write(spec_path("vectors").join(file_name(vector)), &vector.bytes).unwrap();
        }
        let text = serde_json::to_string_pretty(&manifest).unwrap() + "\n";
        fs::write(spec_path("vectors/manifest.json"), text).unwrap();
    }
    let text = fs::read_to_string(spec_path("vectors/manifest.json")).unwrap();
    let written: Value = serde_json::from_str(&text).unwrap();
    for (vector, entry) in vectors.iter().zip(written["vectors"].as_array().unwrap()) {
        let file = fs::read(spec_path("vectors").join(file_name(vector))).unwrap();
        assert!(file == vector.bytes, "{}: the encoders give other bytes than the file holds", vector.name);
        let read = vector.describe(&file);
        assert_eq!(read.as_ref().ok(), entry.get("fields"), "{}", vector.name);
        assert_eq!(read.err().map(Value::from).as_ref(), entry.get("fault"), "{}", vector.name);
    }
    assert_eq!(written, manifest);
}

#[test]
fn every_file_is_in_a_manifest() {
    let mut listed = BTreeSet::new();
    for name in ["manifest.json", "manifest-derived.json"] {
        let Ok(text) = fs::read_to_string(spec_path("vectors").join(name)) else { continue };
        let manifest: Value = serde_json::from_str(&text).unwrap();
        for entry in manifest["vectors"].as_array().unwrap() {
            assert!(listed.insert(entry["file"].as_str().unwrap().to_owned()), "{entry} is listed twice");
        }
    }
    let there: BTreeSet<String> = fs::read_dir(spec_path("vectors"))
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".json"))
        .collect();
    assert_eq!(there, listed);
}

#[test]
fn verdicts_agree_with_what_is_read() {
    for vector in all() {
        let read = vector.describe(&vector.bytes);
        let text = match (&read, &vector.kind) {
            (Ok(fields), Kind::Segment) => fields["then"].as_str().unwrap().to_owned(),
            (Ok(_), _) => String::new(),
            (Err(fault), _) => fault.clone(),
        };
        let name = vector.name;
        match vector.verdict {
            Verdict::Good => {
                assert!(read.is_ok() && ["", "zero to the end"].contains(&text.as_str()), "{name}: {text}")
            }
            Verdict::Torn => assert!(
                text.contains("; a sector is zero") || text == "zero, then other bytes",
                "{name}: {text}"
            ),
            Verdict::Refused => assert!(text.contains("not known to this build"), "{name}: {text}"),
            Verdict::Damaged if name == "control-newer-slot-bad" => assert!(read.is_ok()),
            Verdict::Damaged => {
                assert!(!text.is_empty() && !text.contains("not known to this build"), "{name}: {text}")
            }
        }
    }
}

/// Decoding and encoding again gives the same bytes.
fn encoded_again(vector: &Vector) -> Option<Vec<u8>> {
    let bytes = &vector.bytes;
    match &vector.kind {
        Kind::SegmentHeader => Some(SegmentHeader::decode(bytes).unwrap().0.encode().0.to_vec()),
        Kind::Segment => Some(bytes.clone()),
        Kind::Frame(ctx) => {
            let FrameStep::Frame(view) = read_frame(bytes, vector.at, ctx) else { panic!("{}", vector.name) };
            let header = &view.header;
            if header.header_len != 64 || !header.is_known_kind() {
                return None;
            }
            let padded = bytes.len().is_multiple_of(64) && vector.name == "frame-padded";
            let mut builder = FrameBuilder::new(header.lsn, header.epoch, ctx.binding, padded);
            for record in view.records() {
                let record = record.unwrap();
                builder.push(&RecordDraft::new(record.payload.to_vec()).seal(&record.meta));
            }
            builder.finish(header.kind, header.durable, header.chain);
            Some(builder.bytes().to_vec())
        }
        Kind::Record => {
            let view = record::decode(bytes, vector.at, BINDING.epoch, BINDING.salt).unwrap();
            let mut out = Vec::new();
            RecordDraft::new(view.payload.to_vec()).seal(&view.meta).write(&mut out, vector.at, &BINDING);
            Some(out)
        }
        Kind::Control => {
            let mut file = vec![0; CONTROL_LEN];
            for slot in Control::decode(bytes).slots {
                let slot = slot.unwrap();
                let at = usize::try_from(slot.offset()).unwrap();
                file[at..at + 512].copy_from_slice(&slot.encode());
            }
            Some(file)
        }
        Kind::Live => Some(LiveSet::decode(bytes).unwrap().encode()),
        Kind::Lock => {
            Some(LockInfo::parse(std::str::from_utf8(bytes).unwrap()).unwrap().to_text().into_bytes())
        }
    }
}

#[test]
fn good_vectors_come_back_byte_for_byte() {
    let mut exempt = Vec::new();
    for vector in all().iter().filter(|vector| vector.verdict == Verdict::Good) {
        match encoded_again(vector) {
            Some(again) => assert!(again == vector.bytes, "{}", vector.name),
            None => exempt.push(vector.name),
        }
    }
    // What only later writers write.
    assert_eq!(exempt, ["frame-longer-header", "frame-kind-to-skip"]);
}

#[test]
fn every_flipped_bit_of_a_good_vector_is_noticed_or_harmless() {
    for vector in all().iter().filter(|vector| vector.verdict == Verdict::Good) {
        let good = vector.describe(&vector.bytes).unwrap();
        let mut bytes = vector.bytes.clone();
        for bit in 0..bytes.len() * 8 {
            // Of long runs of zeros one bit a byte does.
            if bytes[bit / 8] == 0 && bit / 8 >= 512 && bit % 8 != bit / 8 % 8 {
                continue;
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = vector.describe(&bytes);
            let what = || format!("{} bit {bit}: {read:?}", vector.name);
            match &vector.kind {
                // Noticed where the frames end: something else than zeros stands there, or fewer frames do.
                Kind::Segment => {
                    let fine = read.as_ref().is_ok_and(|found| {
                        found["then"] == good["then"]
                            && found["frames"].as_array() == good["frames"].as_array()
                    });
                    assert!(!fine, "{}", what());
                }
                // Behind the slots nothing is looked at; in a slot the flip costs the slot and nothing else.
                Kind::Control if bit / 8 % 4096 >= 512 => assert_eq!(read.as_ref(), Ok(&good), "{}", what()),
                Kind::Control => {
                    let hit = bit / 8 / 4096;
                    let found = read.as_ref().unwrap();
                    assert!(found["slots"][hit]["fault"].is_string(), "{}", what());
                    assert_eq!(found["slots"][1 - hit], good["slots"][1 - hit], "{}", what());
                }
                // Information for people.
                Kind::Lock => {}
                _ => assert!(read.is_err(), "{}", what()),
            }
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

proptest! {
    /// Any bytes put anywhere into any vector, and any cut: nothing panics, and what was good is refused.
    #[test]
    fn vectors_with_foreign_bytes_are_refused(
        which in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        len in any::<prop::sample::Index>(),
        cut in any::<bool>(),
    ) {
        let vectors = all();
        let vector = &vectors[which.index(vectors.len())];
        let mut bytes = vector.bytes.clone();
        for (at, byte) in &edits {
            let at = at.index(bytes.len());
            bytes[at] = *byte;
        }
        if cut {
            bytes.truncate(len.index(bytes.len()));
        }
        let read = vector.describe(&bytes);
        // An edit of a damaged vector may mend it.
        let strict = matches!(vector.kind, Kind::SegmentHeader | Kind::Frame(_) | Kind::Record | Kind::Live);
        if strict && vector.verdict == Verdict::Good && bytes != vector.bytes {
            prop_assert!(read.is_err(), "{}: {read:?}", vector.name);
        }
    }
}
