//! Inputs to start from: the golden vectors of `format-spec/`, pieces of freshly made small stores, and, for what reads an
//! input as choices, drawn bytes.

use super::small_store::small_store;
use crate::testing::Random;

/// A first input of a target.
pub struct Seed {
    /// The name of the fuzz target.
    pub target: &'static str,
    /// What it comes from; a file name.
    pub name: String,
    /// The input.
    pub bytes: Vec<u8>,
}

/// Seeds for every target. `vectors` are the golden vectors, by file name.
#[must_use]
pub fn seeds(vectors: &[(String, Vec<u8>)]) -> Vec<Seed> {
    let mut seeds = Vec::new();
    for (name, bytes) in vectors {
        of_file(&mut seeds, name, bytes);
    }
    for which in 0..3u8 {
        of_store(&mut seeds, which);
    }
    of_text(&mut seeds);
    of_grammars(&mut seeds);
    seeds
}

/// `front` and `bytes`, to a target.
fn put(seeds: &mut Vec<Seed>, target: &'static str, name: &str, front: &[u8], bytes: &[u8]) {
    seeds.push(Seed { target, name: name.to_owned(), bytes: [front, bytes].concat() });
}

/// The seeds that a vector, or another file that is named like one, makes.
fn of_file(seeds: &mut Vec<Seed>, name: &str, bytes: &[u8]) {
    let kind = name.split(['-', '.']).next().unwrap_or_default();
    match kind {
        "frame" => put(seeds, "frame_decode", name, &[0xFF, 0], bytes),
        "segment" => {
            put(seeds, "segment_scan", name, &[0xFF, 0, 0, 0, 0, 0, 0, 0], bytes);
            put(seeds, "segment_scan", &format!("raw-{name}"), &[0; 8], bytes);
            put(seeds, "store_open", name, &file_front(2, bytes), bytes);
        }
        "record" => put(seeds, "record_decode", name, &[1], bytes),
        "index" if name.starts_with("index-part") => {
            let len = u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes();
            put(seeds, "index_open", name, &[&[1], len.as_slice()].concat(), &[bytes, &[0xFF; 2]].concat());
        }
        "index" => {
            put(seeds, "index_open", name, &[2], bytes);
            put(seeds, "store_open", name, &file_front(4, bytes), bytes);
        }
        "run" => {
            put(seeds, "directory_open", name, &[1], bytes);
            put(seeds, "store_open", name, &file_front(6, bytes), bytes);
        }
        "control" => put(seeds, "store_open", name, &file_front(0, bytes), bytes),
        "live" => put(seeds, "store_open", name, &file_front(1, bytes), bytes),
        _ => {}
    }
}

/// What stands before file number `name` in an input of `store_open`: nothing to start from, and all mended.
fn file_front(name: u8, bytes: &[u8]) -> Vec<u8> {
    let [low, high] = u16::try_from(bytes.len()).unwrap_or(u16::MAX).to_le_bytes();
    vec![0, name, 0xFF, low, high]
}

/// The store as it is, some patches of it, and its files by themselves.
fn of_store(seeds: &mut Vec<Seed>, which: u8) {
    let disk = &small_store(which).disk;
    let start = which + 3;
    put(seeds, "store_open", &format!("store-{which}"), &[start], &[]);
    for (file, path) in (0u8..).zip(disk.files()) {
        let name = path.replace('/', "-");
        for act in 0..8u8 {
            // A place in the first frame, or in a header's counts; mended or not.
            for (place, mend) in [(24u8, 0u8), (60, 0xF8)] {
                let bytes = [start, file, act | mend, place, 2, 8, 1, 2, 3, 4, 5, 6, 7, 8];
                put(seeds, "store_open", &format!("store-{which}-{name}-{act}-{place}"), &bytes, &[]);
            }
        }
        let Some(mut bytes) = disk.contents(&path) else { continue };
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        bytes.truncate(used.next_multiple_of(512).min(16 << 10));
        let kind = match path.rsplit('.').next() {
            Some("seg") => "segment",
            Some("idx") => "index-file",
            Some("run") => "run",
            _ => continue,
        };
        of_file(seeds, &format!("{kind}-of-store-{which}-{name}"), &bytes);
    }
}

fn of_text(seeds: &mut Vec<Seed>) {
    let lines = include_str!("session.jsonl");
    let header = "{\"type\":\"session\",\"version\":0,\"id\":\"s\",\"createdAt\":1,\"cwd\":\"/x\"}\n";
    let packed = concat!(
        "{\"type\":\"text-chunks\",\"seq0\":0,\"time0\":10,\"data\":{\"turn\":1,\"step\":2,\"index\":0,",
        "\"dt\":[5,-7],\"texts\":[\"a\\\"\",\"\\ud800\",\"b\"]}}\n"
    );
    put(seeds, "jsonl_import", "lines", header.as_bytes(), lines.as_bytes());
    put(seeds, "jsonl_import", "packed", header.as_bytes(), packed.as_bytes());
    put(seeds, "jsonl_import", "torn", header.as_bytes(), lines.get(..400).unwrap_or_default().as_bytes());
    for (number, line) in lines.lines().enumerate() {
        put(seeds, "json_value", &format!("line-{number}"), line.as_bytes(), &[]);
    }
    let odd =
        br#"{"seq":0, "type":"odd","time":-1.50e2,"data":[1, "\ud800",{"a":{}},null,true],"more":null}"#;
    put(seeds, "json_value", "odd", odd, &[]);
    put(seeds, "json_value", "header", header.trim_end().as_bytes(), &[]);
}

/// The targets whose input is a list of choices: drawn ones lead everywhere.
const GRAMMARS: [(&str, &[u8], u64); 8] = [
    ("packed_chunk", &[2], 40),
    ("round_trip", &[20], 60),
    ("simulation", &[4, 7, 0, 0xFF], 20),
    ("simulation", &[], 30),
    ("sqlite_import", &[1], 30),
    ("sqlite_import", &[2], 30),
    ("surface_fold", &[], 60),
    ("transcript", &[], 60),
];

fn of_grammars(seeds: &mut Vec<Seed>) {
    for (target, front, count) in GRAMMARS {
        for number in 0..count {
            let mut random = Random::new(number ^ 0x6772);
            let mut bytes = vec![0; 16 + random.index(900)];
            random.fill(&mut bytes);
            let name = format!("drawn-{}-{number}", front.first().copied().unwrap_or(0));
            put(seeds, target, &name, front, &bytes);
        }
    }
    for (number, line) in include_str!("session.jsonl").lines().enumerate() {
        if let Some(data) = line.split_once("\"data\":").map(|(_, rest)| rest.trim_end_matches('}')) {
            put(seeds, "packed_chunk", &format!("data-{number}"), &[0], format!("{data}}}}}").as_bytes());
        }
    }
    let row = r#"{"type":"tool-call-chunks","seq0":3,"time0":10,"data":{"turn":1,"step":2,"index":0,"id":"c","name":"n","dt":[5],"args":["{","}"]}}"#;
    put(seeds, "packed_chunk", "row", &[1], row.as_bytes());
}
