//! The golden vectors of payloads, index parts, index files and directory runs.

use super::samples::Verdict;
use crate::event::{Event, NewEvent, Time};
use crate::format::constants::coding;
use crate::format::directory::{self, RunBuilder};
use crate::format::index;
use crate::format::meta::EventMeta;
use crate::format::payload::{self, Parts};
use crate::format::segment_header::Ending;

/// How the vector is to be read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Payload(EventMeta),
    Session,
    Part,
    Index,
    Run,
}

pub(super) struct Vector {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) verdict: Verdict,
    pub(super) bytes: Vec<u8>,
}

fn vector(name: &'static str, kind: Kind, verdict: Verdict, bytes: Vec<u8>) -> Vector {
    Vector { name, kind, verdict, bytes }
}

pub(super) fn all() -> Vec<Vector> {
    let mut all = payloads();
    all.extend(bad_payloads());
    all.extend(sessions());
    all.extend(indexes());
    all.extend(runs());
    all
}

fn good(name: &'static str, event: &Event) -> Vector {
    let mut bytes = Vec::new();
    let encoded = payload::encode(&Parts::of_event(event), &mut bytes);
    vector(name, Kind::Payload(encoded.meta(1, event.seq(), false)), Verdict::Good, bytes)
}

fn of_line(name: &'static str, line: &str) -> Vector {
    good(name, &Event::parse_line(line).unwrap())
}

fn of_chunk(name: &'static str, chunk: &str) -> Vector {
    let data = format!(r#"{{"turn":1,"step":300,"chunk":{chunk}}}"#);
    let new = NewEvent::raw("assistant/chunk", &data).unwrap();
    good(name, &new.into_event(7, Time::from_millis(1_782_094_878_835)))
}

fn payloads() -> Vec<Vector> {
    vec![
        of_chunk("payload-chunk-text", r#"{"type":"text-delta","index":0,"text":" me"}"#),
        of_chunk("payload-chunk-reasoning", r#"{"type":"reasoning-delta","index":0,"text":"\ud800\n\"ü"}"#),
        of_chunk(
            "payload-chunk-call",
            r#"{"type":"tool-call-delta","index":1,"id":"c1","argumentsDelta":"{\"a"}"#,
        ),
        of_chunk(
            "payload-chunk-named-call",
            r#"{"type":"tool-call-delta","index":1,"id":"c1","name":"bash","argumentsDelta":""}"#,
        ),
        of_chunk("payload-chunk-block-start", r#"{"type":"block-start","index":2,"blockType":"tool-call"}"#),
        of_chunk("payload-chunk-as-plain", r#"{"type":"text-delta","index":0,"text":"x","more":1}"#),
        of_line(
            "payload-plain-append",
            r#"{"type":"user/message","seq":1,"time":1782094878834,"data":{"content":[]},"surfaceOp":"append"}"#,
        ),
        of_line(
            "payload-plain-replace",
            r#"{"type":"assistant/message","seq":9,"time":2,"data":{"turn":1, "step":2},"sourceEventSeqs":[4,5,6,7,2],"surfaceOp":{"op":"replace","start":1,"end":2}}"#,
        ),
        of_line(
            "payload-plain-other",
            r#"{"type":"plugin\u0000/x","seq":3,"time":-1.50,"data":null,"origin":{"k":[1e2]},"ignorable":true}"#,
        ),
        of_line(
            "payload-verbatim",
            r#"{"seq":4.0,"type":"user/message","time":5,"data":1,"surfaceOp":{"end":3,"op":"replace","start":1}}"#,
        ),
    ]
}

fn bad_payloads() -> Vec<Vector> {
    let meta = |coding, class| EventMeta {
        more: false,
        coding,
        class,
        dense: 1,
        seq: 5,
        time_ms: Some(1),
        replace: None,
    };
    let bad = |name, coding, class, bytes: &[u8]| {
        vector(name, Kind::Payload(meta(coding, class)), Verdict::Damaged, bytes.to_vec())
    };
    vec![
        bad("payload-bad-varint", coding::CHUNK, 0, b"\x01\x81\x00\x01\x00x"),
        bad("payload-bad-chunk-quote", coding::CHUNK, 0, b"\x01\x01\x01\x00\"},\"x\":{\"y\":\""),
        bad("payload-bad-chunk-shape", coding::CHUNK, 0, b"\x06\x01\x01\x00x"),
        bad("payload-bad-data", coding::PLAIN, 2, b"\x00{]"),
        bad("payload-bad-sources", coding::PLAIN, 7, b"\x02\x01\x00\xFF\xFF\xFF\xFF\x0F1"),
        bad("payload-bad-known-type", coding::PLAIN, 1, b"\x00\x0Aturn/start1"),
        bad("payload-bad-line", coding::VERBATIM, 7, b"{\"type\":\"user/message\",\"seq\":5}"),
    ]
}

fn sessions() -> Vec<Vector> {
    let mut bytes = Vec::new();
    payload::encode_session(
        "a\u{0}b",
        r#"{"type":"session","version":0,"id":"a\u0000b","createdAt":1}"#,
        &mut bytes,
    );
    vec![
        vector("session-payload", Kind::Session, Verdict::Good, bytes),
        vector("session-payload-bad-id", Kind::Session, Verdict::Damaged, b"\x03a\x00b{}".to_vec()),
    ]
}

fn changed(bytes: &[u8], at: usize, to: u8) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at] = to;
    bytes
}

/// As [`changed`] in a header, whose checksum is made right again.
fn header_changed(bytes: &[u8], at: usize, to: u8) -> Vec<u8> {
    let mut bytes = changed(bytes, at, to);
    let crc = crc32fast::hash(&bytes[..508]);
    bytes[508..512].copy_from_slice(&crc.to_le_bytes());
    bytes
}

fn indexes() -> Vec<Vector> {
    let table = index::tests::sample();
    let part = table.encode_part();
    let file = table.to_index(1100, 0xABCD_EF01, Ending::Damaged);
    vec![
        vector("index-part", Kind::Part, Verdict::Good, part.clone()),
        vector("index-part-cut", Kind::Part, Verdict::Damaged, part[..part.len() - 1].to_vec()),
        vector("index-part-count", Kind::Part, Verdict::Damaged, changed(&part, 0, 0x7F)),
        vector("index-file", Kind::Index, Verdict::Good, file.clone()),
        vector("index-file-block-flipped", Kind::Index, Verdict::Damaged, changed(&file, 700, 0xEE)),
        vector("index-file-cut", Kind::Index, Verdict::Damaged, file[..file.len() - 4].to_vec()),
        vector("index-file-version-2", Kind::Index, Verdict::Refused, header_changed(&file, 8, 2)),
        vector("index-file-feature", Kind::Index, Verdict::Refused, header_changed(&file, 12, 1)),
    ]
}

fn runs() -> Vec<Vector> {
    let mut builder = RunBuilder::new(directory::tests::sample_key(), 100_000);
    directory::tests::sample().iter().for_each(|entry| builder.push(entry));
    let file = builder.finish();
    let empty = RunBuilder::new(directory::tests::sample_key(), 1).finish();
    vec![
        vector("run", Kind::Run, Verdict::Good, file.clone()),
        vector("run-empty", Kind::Run, Verdict::Good, empty),
        vector("run-block-flipped", Kind::Run, Verdict::Damaged, changed(&file, 640, 0xEE)),
        vector("run-header-flipped", Kind::Run, Verdict::Damaged, changed(&file, 64, 0xEE)),
        vector("run-version-2", Kind::Run, Verdict::Refused, header_changed(&file, 8, 2)),
    ]
}
