//! Runs give back what was put in; the newest wins; every flipped bit is noticed.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::format::blocks::FileFault;
use crate::format::names;

fn key(from: u64, to: u64) -> RunKey {
    RunKey { store: StoreId(*b"store-of-vectors"), from: Lsn(from), to: Lsn(to) }
}

pub(crate) fn sample_key() -> RunKey {
    key(0, 3 << 32)
}

fn entry(dense: u64, id: &str) -> DirEntry {
    let header = format!("{{\"type\":\"session\",\"version\":0,\"id\":\"{id}\",\"createdAt\":{dense}}}");
    DirEntry {
        dense,
        id: id.into(),
        header_json: header.into(),
        deleted: false,
        staged: false,
        open_turn: false,
        damaged: false,
        last_segment: 0,
        own_first: 0,
        next_seq: 0,
        bytes: 0,
        first_time: None,
        last_time: None,
        fork: None,
        damage_from: 0,
        accepted: 0,
    }
}

/// A deleted session and a newer one of the same id, a fork, a fork of it, a damaged one.
pub(crate) fn sample() -> Vec<DirEntry> {
    vec![
        DirEntry { deleted: true, next_seq: 4, bytes: 120, last_segment: 1, ..entry(1, "build") },
        DirEntry {
            open_turn: true,
            next_seq: 1000,
            bytes: 40_000,
            last_segment: 2,
            first_time: Some(1_782_094_878_834),
            last_time: Some(-5),
            ..entry(2, "build")
        },
        DirEntry {
            own_first: 700,
            next_seq: 702,
            fork: Some(ForkRef { parent: 2, ancestor: 2, cut: 700 }),
            ..entry(5, "süden")
        },
        DirEntry {
            staged: true,
            own_first: 10,
            next_seq: 10,
            fork: Some(ForkRef { parent: 5, ancestor: 2, cut: 10 }),
            ..entry(6, "grandchild")
        },
        DirEntry { damaged: true, damage_from: 17, next_seq: 30, accepted: 9 << 32, ..entry(9, "hurt") },
    ]
}

fn build(entries: &[DirEntry], key: RunKey) -> Vec<u8> {
    let mut builder = RunBuilder::new(key, 100_000);
    entries.iter().rev().for_each(|e| builder.push(e));
    builder.finish()
}

fn sample_file() -> Vec<u8> {
    build(&sample(), sample_key())
}

fn open(bytes: Vec<u8>) -> Result<RunFile<Vec<u8>>, FileFault> {
    RunFile::open(bytes, &sample_key())
}

#[test]
fn a_run_says_what_it_was_built_from() {
    let run = open(sample_file()).unwrap();
    run.verify().unwrap();
    assert_eq!(run.entries().collect::<Result<Vec<_>, _>>().unwrap(), sample());
    assert_eq!((run.info().entries, run.info().next_dense), (5, 100_000));
    assert_eq!(run.lookup(&id_hash("build")).unwrap(), [1, 2]);
    assert_eq!(run.lookup(&id_hash("süden")).unwrap(), [5]);
    assert_eq!(run.lookup(&id_hash("nobody")).unwrap(), [0u64; 0]);
    assert_eq!(run.entry(9).unwrap().as_ref(), sample().last());
    assert_eq!(run.entry(7).unwrap(), None);
    assert_eq!(run.children(2).unwrap(), [5, 6]);
    assert_eq!(run.children(5).unwrap(), [6]);
    assert_eq!(run.children(1).unwrap(), [0u64; 0]);
}

#[test]
fn a_run_that_is_written_in_pieces_is_the_same() {
    let mut entries = sample();
    entries.extend((100..5000).map(|dense| entry(dense, &format!("session {dense}"))));
    let mut pieces = 0;
    let written = crate::format::blocks::in_memory(|sink| {
        let each = |take: &mut dyn FnMut(&DirEntry)| entries.iter().for_each(take);
        write_run(&sample_key(), 100_000, entries.len(), &each, &mut |at, bytes| {
            pieces += 1;
            sink(at, bytes)
        })
    });
    assert!(pieces > 3, "{pieces}");
    let mut builder = RunBuilder::new(sample_key(), 100_000);
    entries.iter().for_each(|entry| builder.push(entry));
    assert!(written == builder.finish());
    open(written).unwrap().verify().unwrap();
}

#[test]
fn the_hash_is_the_front_of_sha_256() {
    // SHA-256 of "abc" begins ba7816bf 8f01cfea 414140de 5dae2223, as its standard gives it.
    assert_eq!(id_hash("abc")[..4], [0xBA, 0x78, 0x16, 0xBF]);
    assert_eq!(id_hash("abc")[12..], [0x5D, 0xAE, 0x22, 0x23]);
}

#[test]
fn every_flipped_bit_is_noticed() {
    let good = sample_file();
    for at in 0..good.len() * 8 {
        let mut bad = good.clone();
        bad[at / 8] ^= 1 << (at % 8);
        assert!(open(bad).and_then(|run| run.verify()).is_err(), "bit {at} went unnoticed");
    }
}

#[test]
fn every_other_length_and_place_is_refused() {
    let good = sample_file();
    for len in 0..good.len() {
        assert!(open(good[..len].to_vec()).is_err(), "{len}");
    }
    assert!(matches!(open([good.clone(), vec![0]].concat()), Err(FileFault::Length { .. })));
    let at = |key: RunKey| RunFile::open(good.clone(), &key).err();
    assert_eq!(at(key(0, 4 << 32)), Some(FileFault::Foreign("range of the log")));
    assert_eq!(at(RunKey { store: StoreId([1; 16]), ..sample_key() }), Some(FileFault::Foreign("store")));
}

#[test]
fn an_empty_run_holds_nothing() {
    let run = open(build(&[], sample_key())).unwrap();
    run.verify().unwrap();
    assert_eq!(run.entries().count(), 0);
    assert_eq!(run.lookup(&id_hash("x")).unwrap(), [0u64; 0]);
    assert_eq!((run.entry(1).unwrap(), run.children(1).unwrap()), (None, vec![]));
}

#[test]
fn the_chain_takes_the_furthest_run_at_each_end() {
    let range = |from: u64, to: u64| RunRange { from: Lsn(from), to: Lsn(to) };
    let chosen = |all: &[(u64, u64)]| {
        let ranges = all.iter().map(|&(f, t)| range(f, t));
        choose_chain(ranges).iter().map(|r| (r.from.0, r.to.0)).collect::<Vec<_>>()
    };
    assert_eq!(chosen(&[(20, 30), (0, 10), (10, 20), (0, 20)]), [(0, 20), (20, 30)]);
    assert_eq!(chosen(&[(5, 10), (20, 30)]), []);
    assert_eq!(chosen(&[(0, 10), (11, 30)]), [(0, 10)]);
    assert_eq!(chosen(&[(0, 0), (10, 5), (0, 10)]), [(0, 10)]);
    let name = names::run(Lsn(0), Lsn::new(2, 7));
    let file = name.rsplit('/').next().unwrap();
    assert_eq!(RunRange::of_name(file), Some(range(0, 2 << 32 | 7)));
    assert_eq!(RunRange::of_name("x.run"), None);
}

#[test]
fn entries_that_share_the_heap_are_not_merged() {
    let key = key(0, 1);
    let mut bytes = build(&sample(), key);
    let entries = usize::try_from(layout::header::BY_DENSE.u64(&bytes)).unwrap();
    let heap = u32::try_from(layout::header::HEAP_LEN.u64(&bytes)).unwrap();
    // The second entry's header reaches from the heap's beginning to its end.
    let second = &mut bytes[entries + layout::ENTRY_LEN..][..layout::ENTRY_LEN];
    layout::by_dense::HEAP_AT.put(second, &[0; 8]);
    layout::by_dense::ID_LEN.put(second, &[0; 4]);
    layout::by_dense::HEADER_LEN.put(second, &heap.to_le_bytes());
    crate::format::blocks::resum(&mut bytes, &layout::BLOCKS);
    let run = RunFile::open(bytes, &key).unwrap();
    assert!(run.verify().is_err());
    assert!(merge(&[&run], |_| true).is_err());
}

#[test]
fn runs_that_do_not_join_are_not_merged() {
    let run = |from, to| RunFile::open(build(&sample(), key(from, to)), &key(from, to)).unwrap();
    assert!(merge(&[&run(0, 1), &run(2, 3)], |_| true).is_err());
    assert!(merge::<Vec<u8>>(&[], |_| true).is_err());
    assert!(merge(&[&run(0, 1), &run(1, 3)], |_| true).is_ok());
}

fn entries() -> impl Strategy<Value = Vec<DirEntry>> {
    let fork = prop::option::of((1u64..30, 1u64..30, any::<u64>()))
        .prop_map(|f| f.map(|(parent, ancestor, cut)| ForkRef { parent, ancestor, cut }));
    let times = prop::option::of(any::<[i64; 2]>());
    let one = (1u64..30, "[a-c]{1,2}", any::<[bool; 4]>(), any::<[u64; 5]>(), times, fork);
    prop::collection::vec(one, 0..20).prop_map(|rows| {
        let unique: BTreeMap<u64, DirEntry> = rows
            .into_iter()
            .map(|(dense, id, [deleted, staged, open_turn, damaged], n, times, fork)| {
                let [own_first, next_seq, bytes, damage_from, accepted] = n;
                let (first_time, last_time) = (times.map(|t| t[0]), times.map(|t| t[1]));
                let last_segment = u32::try_from(bytes % 1000).unwrap();
                let flags =
                    DirEntry { deleted, staged, open_turn, damaged, last_segment, ..entry(dense, &id) };
                let counts = DirEntry { own_first, next_seq, bytes, damage_from, accepted, ..flags };
                (dense, DirEntry { first_time, last_time, fork, ..counts })
            })
            .collect();
        unique.into_values().collect()
    })
}

proptest! {
    #[test]
    fn entries_come_back_and_newest_wins(runs in prop::collection::vec(entries(), 1..5)) {
        let mut model: BTreeMap<u64, DirEntry> = BTreeMap::new();
        let mut files = Vec::new();
        for (i, run) in (0u64..).zip(&runs) {
            let file = RunFile::open(build(run, key(i, i + 1)), &key(i, i + 1)).unwrap();
            prop_assert_eq!(file.verify(), Ok(()));
            prop_assert_eq!(&file.entries().collect::<Result<Vec<_>, _>>().unwrap(), run);
            model.extend(run.iter().map(|e| (e.dense, e.clone())));
            files.push(file);
        }
        model.retain(|_, e| !e.deleted);
        let merged = merge(&files.iter().collect::<Vec<_>>(), |e| !e.deleted).unwrap();
        let merged = RunFile::open(merged, &key(0, runs.len() as u64)).unwrap();
        prop_assert_eq!(merged.verify(), Ok(()));
        let all: Vec<_> = merged.entries().collect::<Result<_, _>>().unwrap();
        prop_assert_eq!(&all, &model.values().cloned().collect::<Vec<_>>());
        for e in &all {
            prop_assert!(merged.lookup(&id_hash(&e.id)).unwrap().contains(&e.dense));
            if let Some(fork) = e.fork {
                prop_assert!(merged.children(fork.parent).unwrap().contains(&e.dense));
                prop_assert!(merged.children(fork.ancestor).unwrap().contains(&e.dense));
            }
        }
    }

    #[test]
    fn no_forged_run_makes_a_reader_panic(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)
    ) {
        let mut bytes = sample_file();
        for (at, value) in flips {
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        crate::format::blocks::resum(&mut bytes, &layout::BLOCKS);
        if let Ok(run) = open(bytes) {
            let _ = run.verify();
            let _ = run.lookup(&id_hash("build"));
            let _ = run.children(2);
            prop_assert!(run.entries().count() < 1000);
        }
    }
}
