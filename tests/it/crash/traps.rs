//! What stores meet in the field: later formats, foreign bytes, other writers, places where nothing may be written.

use std::sync::Arc;

use sessionlog::ErrorKind;
use sessionlog::disk::FsKind;
use sessionlog::testing::oracle::{check, look};
use sessionlog::testing::workload::{Op, event, open, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk, Workload};

fn written(closed: bool) -> (SimDisk, Model) {
    let disk = SimDisk::new();
    let mut workload = Workload::new(&disk, 3).unwrap();
    let ops =
        [Op::Create, Op::Append(50), Op::FlushAll, Op::Create, Op::Batch(4), Op::Append(900), Op::FlushAll];
    workload.run(&ops).unwrap();
    if closed {
        workload.close().unwrap();
        return (disk.snapshot(), workload.model.lock().clone());
    }
    let model = workload.model.lock().clone();
    (disk.snapshot().kill_writer(), model)
}

fn everything(disk: &SimDisk) -> Vec<(String, Vec<u8>)> {
    let files = disk.files().into_iter().filter(|file| file != "LOCK");
    files.map(|file| (file.clone(), disk.contents(&file).unwrap())).collect()
}

fn with_crc(bytes: &mut [u8], at: usize) {
    let sum = crc32fast::hash(&bytes[..at]);
    bytes[at..at + 4].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn a_later_format_version_is_refused_by_name_and_left_untouched() {
    for file in ["CONTROL", "LIVE", "segments/00000001.seg"] {
        let (disk, _) = written(true);
        let mut bytes = disk.contents(file).unwrap();
        bytes[8] = 9;
        let crc = if file == "LIVE" { bytes.len() - 4 } else { 508 };
        with_crc(&mut bytes, crc);
        disk.install(file, &bytes);
        let before = everything(&disk);
        let error = open(&disk, 1).map(|_| ()).expect_err(file);
        assert_eq!(error.kind(), ErrorKind::Version, "{file}: {error}");
        assert!(error.to_string().contains('9') && error.to_string().contains(file), "{error}");
        let runtime = Arc::new(SeededRuntime::new(1));
        let error = options(&disk, &runtime).open_read_only("").map(|_| ()).expect_err(file);
        assert_eq!(error.kind(), ErrorKind::Version, "{file}: {error}");
        assert!(everything(&disk) == before, "{file}: a store of a later version was touched");
    }
}

#[test]
fn zeros_behind_a_good_log_are_harmless_and_zeros_within_are_told() {
    for closed in [true, false] {
        let (disk, model) = written(closed);
        let name = "segments/00000001.seg";
        let length = disk.contents(name).unwrap().len() as u64;
        disk.overwrite(name, length, &[0; 4096]);
        let (store, _) = open(&disk, 1).unwrap();
        assert!(check(&store, &model).0.is_empty(), "{:?}", check(&store, &model));
        drop(store);
        let (disk, model) = written(closed);
        disk.zero(name, 1024..1536);
        let (store, _) = open(&disk, 1).unwrap();
        let sight = look(&store, &model);
        assert!(sight.wrong.is_empty() && !sight.told.is_empty() && !sight.lost.is_empty(), "{sight:?}");
    }
}

#[test]
fn an_older_copy_of_a_file_is_noticed_or_harmless() {
    let disk = SimDisk::new();
    let mut workload = Workload::new(&disk, 3).unwrap();
    workload.run(&[Op::Create, Op::Append(50), Op::FlushAll]).unwrap();
    let older = everything(&disk);
    workload.run(&[Op::Append(50), Op::FlushAll, Op::Append(700), Op::FlushAll, Op::Idle(50)]).unwrap();
    workload.close().unwrap();
    let model = workload.model.lock().clone();
    for (file, bytes) in older {
        let disk = disk.snapshot();
        disk.install(&file, &bytes);
        let (store, _) = open(&disk, 1).unwrap_or_else(|error| panic!("an older {file}: {error}"));
        let sight = look(&store, &model);
        assert!(sight.wrong.is_empty(), "an older {file}: {sight:?}");
        assert!(sight.lost.is_empty() || !sight.told.is_empty(), "an older {file}: {sight:?}");
        assert_eq!(sight.lost.is_empty(), !file.ends_with(".seg"), "an older {file}: {sight:?}");
    }
}

#[test]
fn a_second_writer_is_told_who_the_first_one_is() {
    let (disk, _) = written(true);
    let (first, _) = open(&disk, 1).unwrap();
    let error = open(&disk.other_process(), 2).map(|_| ()).unwrap_err();
    assert!(error.is_locked() && error.to_string().contains("pid 4242"), "{error}");
    drop(first);
    open(&disk.other_process(), 2).unwrap();
}

#[test]
fn a_directory_that_may_only_be_read_opens_for_reading() {
    let (disk, model) = written(false);
    disk.set_read_only(true);
    let runtime = Arc::new(SeededRuntime::new(1));
    let store = options(&disk, &runtime).open_read_only("").unwrap();
    assert!(check(&store, &model).0.is_empty(), "{:?}", check(&store, &model));
    assert!(open(&disk, 2).is_err());
}

#[test]
fn a_network_file_system_refuses_a_writer_unless_allowed() {
    let (disk, _) = written(true);
    disk.set_fs_kind(FsKind::Network("nfs".into()));
    let error = open(&disk, 1).map(|_| ()).unwrap_err();
    assert!(error.kind() == ErrorKind::Unsupported && error.to_string().contains("nfs"), "{error}");
    let runtime = Arc::new(SeededRuntime::new(1));
    options(&disk, &runtime).open_read_only("").unwrap();
    options(&disk, &runtime).allow_network_fs(true).open("").unwrap();
}

#[test]
fn a_forked_child_gets_a_typed_error_and_writes_nothing() {
    let (disk, _) = written(true);
    let (store, runtime) = open(&disk, 1).unwrap();
    let session = store.resume("made-1").unwrap().session;
    store.flush().unwrap();
    let seq = usize::try_from(session.seq()).unwrap();
    let before = everything(&disk);
    runtime.set_process_id(99);
    assert_eq!(session.append(event(seq, "x").unwrap().0).unwrap_err().kind(), ErrorKind::Forked);
    assert_eq!(store.flush().unwrap_err().kind(), ErrorKind::Forked);
    drop(session);
    drop(store);
    assert!(everything(&disk) == before, "the child wrote");
}
