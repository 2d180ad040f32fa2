//! What the fuzz targets run, on fixed inputs: golden vectors, small stores, and inputs that once broke something.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sessionlog::StoreOptions;
use sessionlog::testing::SeededRuntime;
use sessionlog::testing::fuzzing::{self, Body, Crowd};

use super::counting_allocator::most_allocated;
use super::vectors;

fn root(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)
}

/// The files of a folder by name; none where there is no folder.
fn files(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = entries
        .map(|entry| entry.unwrap())
        .filter(|entry| entry.file_type().unwrap().is_file())
        .map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap()))
        .collect();
    files.sort();
    files
}

fn body(target: &str) -> Body {
    fuzzing::TARGETS.iter().find(|(name, _)| *name == target).unwrap().1
}

fn replay(target: &str, name: &str, input: &[u8]) {
    println!("{target} {name}");
    let most = most_allocated(|| body(target)(input));
    let bound = fuzzing::allocation_bound(input.len());
    assert!(most <= bound, "{target} {name}: {most} bytes were allocated, at most {bound} may be");
}

/// Seeds and kept inputs of a target.
fn replay_all(target: &str) {
    let seeds = fuzzing::seeds(&files(&root("format-spec/vectors")));
    let mine: Vec<_> = seeds.iter().filter(|seed| seed.target == target).collect();
    assert!(!mine.is_empty(), "{target} has no seeds");
    let kept = files(&root("tests/data/fuzz").join(target));
    println!("{target}: {} seeds, {} kept inputs", mine.len(), kept.len());
    mine.iter().for_each(|seed| replay(target, &seed.name, &seed.bytes));
    kept.iter().for_each(|(name, input)| replay(target, name, input));
}

macro_rules! replays {
    ($($target:ident)+) => {
        $(#[test]
        fn $target() {
            replay_all(stringify!($target));
        })+

        #[test]
        fn every_target_is_replayed() {
            let replayed = [$(stringify!($target)),+];
            let targets: Vec<&str> = fuzzing::TARGETS.iter().map(|(name, _)| *name).collect();
            assert_eq!(replayed.as_slice(), targets);
            for target in targets {
                assert!(root("fuzz/fuzz_targets").join(target).with_extension("rs").exists(), "{target}");
            }
        }
    };
}

replays! {
    directory_open frame_decode index_open json_value jsonl_import packed_chunk record_decode round_trip segment_scan
    simulation sqlite_import store_open surface_fold transcript
}

#[test]
fn a_damaged_store_hands_out_only_what_was_written() {
    for seed in 0..40 {
        for which in 0..3 {
            fuzzing::store_damaged(which, seed);
        }
    }
}

/// What opening a forged store had allocated at a time, for a reader and for a writer that closes it again.
fn crowded(crowd: Crowd, count: u64) -> (usize, [usize; 2]) {
    // A real disk: what the simulated one holds is no memory of the engine.
    let folder = tempfile::tempdir().unwrap();
    let mut bytes = 0;
    for name in ["segments", "directory", "quarantine"] {
        fs::create_dir(folder.path().join(name)).unwrap();
    }
    for (name, contents) in crowd.files(count) {
        bytes += contents.len();
        fs::write(folder.path().join(name), contents).unwrap();
    }
    let options = || StoreOptions::new().runtime(Arc::new(SeededRuntime::new(1)));
    let reader = most_allocated(|| drop(options().open_read_only(folder.path()).unwrap()));
    let writer = most_allocated(|| {
        let store = options().open(folder.path()).unwrap();
        store.close().unwrap();
    });
    (bytes, [reader, writer])
}

/// The bound holds for stores of `counts`, and from one to the next no more is added than 16 times what the store grew:
/// so no constant hides a factor, nor a cost that grows faster than the store.
fn crowd_costs_in_proportion(crowd: Crowd, counts: [u64; 3]) {
    let mut before: Option<(usize, [usize; 2])> = None;
    for count in counts {
        let (bytes, most) = crowded(crowd, count);
        println!("{crowd:?} {count}: {bytes} bytes cost {most:?}");
        assert!(most.iter().all(|most| *most <= fuzzing::allocation_bound(bytes)), "{bytes} bytes: {most:?}");
        if let Some((fewer, less)) = before {
            for (who, (most, less)) in ["reader", "writer"].iter().zip(most.iter().zip(less)) {
                let factor = most.saturating_sub(less) as f64 / (bytes - fewer) as f64;
                println!("{crowd:?} {count}: {factor:.1} times for a {who}");
                assert!(factor <= 16.0, "{factor:.1} times for a {who}");
            }
        }
        before = Some((bytes, most));
    }
}

/// Where the tables in memory have just grown to twice their size: the worst counts there are.
const COUNTS: [u64; 3] = [1_800, 3_600, 7_200];

macro_rules! crowds {
    ($($name:ident $crowd:ident)+) => {
        $(#[test]
        fn $name() {
            crowd_costs_in_proportion(Crowd::$crowd, COUNTS);
        })+

        #[test]
        fn every_crowd_is_measured() {
            assert_eq!([$(Crowd::$crowd),+], Crowd::ALL);
        }
    };
}

crowds! {
    a_forged_crowd_of_chunks Chunks
    a_forged_crowd_of_surface_events Surface
    a_forged_crowd_in_an_ended_segment Ended
    a_forged_crowd_of_frames Frames
    a_forged_crowd_in_an_index_frame IndexPart
    a_forged_crowd_of_creations Creates
    a_forged_crowd_of_staged_sessions Staged
    a_forged_crowd_of_forks Forks
    a_forged_crowd_of_deletes Deletes
    a_forged_crowd_of_publications Publishes
    a_forged_crowd_of_accepted_losses Accepted
    a_forged_crowd_of_damaged_records Damage
    a_forged_crowd_of_refused_records Refused
    a_forged_crowd_of_damaged_ranges Ranges
    a_forged_crowd_in_directory_runs Runs
}

#[test]
#[ignore = "minutes: the same for stores of megabytes"]
fn large_forged_crowds_cost_in_proportion() {
    Crowd::ALL.into_iter().for_each(|crowd| crowd_costs_in_proportion(crowd, [28_800, 57_600, 115_200]));
}

#[test]
fn the_counter_counts() {
    let most = most_allocated(|| {
        // An optimiser may leave out memory that nobody looks at.
        let first = std::hint::black_box(vec![0u8; 1 << 20]);
        drop(first);
        drop(std::hint::black_box(vec![1u8; 3 << 19]));
    });
    assert!((3 << 19..(3 << 19) + 4096).contains(&most), "{most}");
}

/// Larger files make a fuzzer slow.
const LARGEST_SEED: usize = 128 << 10;

/// Files of the shared folder, where it is there, as inputs: those of the reference implementation and transcripts of
/// others. They stay in `fuzz/corpus`, of which nothing is committed.
fn shared_seeds() -> Vec<(&'static str, String, Vec<u8>)> {
    let mut seeds = Vec::new();
    for (folder, target, front) in [
        ("jsonl", "jsonl_import", None),
        ("../corpus/dsh", "jsonl_import", None),
        ("sqlite", "sqlite_import", Some(0)),
        ("../corpus", "json_value", None),
    ] {
        let Some(folder) = vectors::shared_path(folder) else { continue };
        for (name, bytes) in all_files(&folder, 0) {
            if target == "json_value" {
                let lines =
                    bytes.split(|byte| *byte == b'\n').filter(|line| line.len() > 1).take(20).enumerate();
                seeds.extend(lines.map(|(at, line)| (target, format!("{name}-{at}"), line.to_vec())));
            } else {
                seeds.push((target, name, front.into_iter().chain(bytes).collect()));
            }
        }
    }
    seeds.retain(|(_, _, bytes)| bytes.len() <= LARGEST_SEED);
    seeds
}

/// The files below `folder`, under names without slashes.
fn all_files(folder: &Path, depth: u8) -> Vec<(String, Vec<u8>)> {
    let mut found = files(folder);
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap()) {
        if depth < 6 && entry.file_type().unwrap().is_dir() {
            let name = entry.file_name().into_string().unwrap();
            let below = all_files(&entry.path(), depth + 1);
            found.extend(below.into_iter().map(|(file, bytes)| (format!("{name}-{file}"), bytes)));
        }
    }
    found
}

/// Writes the seeds where `cargo fuzz` looks for them; see `fuzz/README.md`.
#[test]
#[ignore = "writes files: run by name before fuzzing"]
fn write_fuzz_seeds() {
    let own = fuzzing::seeds(&files(&root("format-spec/vectors")));
    let own = own.into_iter().map(|seed| (seed.target, seed.name, seed.bytes));
    for (target, name, bytes) in own.chain(shared_seeds()) {
        let folder = root("fuzz/corpus").join(target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(name), bytes).unwrap();
    }
}
