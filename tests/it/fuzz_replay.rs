//! What the fuzz targets run, on fixed inputs: golden vectors, small stores, and inputs that once broke something.

use std::fs;
use std::path::{Path, PathBuf};

use sessionlog::testing::fuzzing::{self, Body};

use super::counting_allocator::most_allocated;

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
            let targets = fuzzing::TARGETS.map(|(name, _)| name);
            assert_eq!(replayed.as_slice(), targets.as_slice());
            for target in targets {
                assert!(root("fuzz/fuzz_targets").join(target).with_extension("rs").exists(), "{target}");
            }
        }
    };
}

replays! {
    directory_open frame_decode index_open json_value jsonl_import record_decode segment_scan store_open
}

#[test]
fn a_damaged_store_hands_out_only_what_was_written() {
    for seed in 0..40 {
        for which in 0..3 {
            fuzzing::store_damaged(which, seed);
        }
    }
}

/// Twenty bytes can name a session, which costs some hundred bytes in memory; only forged stores have such. This bound
/// is above [`fuzzing::allocation_bound`]; it tells when the cost of a session or of an opening doubles.
#[test]
fn a_forged_crowd_of_sessions_costs_in_proportion() {
    let mut most = Vec::new();
    let bytes = fuzzing::crowded_store(20_000, &mut |call| most.push(most_allocated(call)));
    println!("a store of {bytes} bytes costs {most:?} bytes to open");
    assert!(most.iter().all(|most| *most <= bytes * 64 + (16 << 20)), "{bytes} bytes: {most:?}");
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

/// Writes the seeds where `cargo fuzz` looks for them; see `fuzz/README.md`.
#[test]
#[ignore = "writes files: run by name before fuzzing"]
fn write_fuzz_seeds() {
    for seed in fuzzing::seeds(&files(&root("format-spec/vectors"))) {
        let folder = root("fuzz/corpus").join(seed.target);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(&seed.name), &seed.bytes).unwrap();
    }
}
