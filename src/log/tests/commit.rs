//! The commit path under both drivers (T1): the seeded one on one thread, and real threads. Every test runs on both.

use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::{append, create, event, small, texts};
use crate::error::ErrorKind;
use crate::log::*;
use crate::rt::RealRuntime;
use crate::testing::{DiskOp, Scheduler, SeededRuntime, SimDisk};

/// Runs `test` with each driver on a fresh disk.
fn on_both(test: impl Fn(&SimDisk, &dyn Fn() -> Arc<dyn Runtime>)) {
    test(&SimDisk::new(), &|| Arc::new(SeededRuntime::new(42)));
    test(&SimDisk::new(), &|| Arc::new(RealRuntime::new()));
}

fn open(disk: &SimDisk, rt: Arc<dyn Runtime>) -> (Log, RecoveryReport) {
    Log::open_writer(Arc::new(disk.clone()), rt, small(), true).unwrap()
}

#[test]
fn sessions_that_flush_together_share_one_sync() {
    on_both(|disk, rt| {
        let (log, _) = open(disk, rt());
        let sessions: Vec<u64> = (0..64).map(|n| create(&log, &format!("s{n}")).0).collect();
        log.flush(log.tail(), Durability::Durable).unwrap();
        let before = log.counters().syncs;
        let ends: Vec<Lsn> =
            sessions.iter().map(|dense| append(&log, vec![event(*dense, 0, "x", false)]).end).collect();
        let tickets: Vec<Ticket> = ends.iter().map(|end| log.ticket(*end)).collect();
        for ticket in tickets {
            ticket.wait().unwrap();
        }
        let syncs = log.counters().syncs - before;
        assert!((1..=4).contains(&syncs), "{syncs} syncs for 64 flushes");
        log.close().unwrap();
    });
}

#[test]
fn a_ticket_is_a_future_that_needs_no_runtime_and_may_be_dropped() {
    on_both(|disk, rt| {
        let runtime = rt();
        let (log, _) = open(disk, Arc::clone(&runtime));
        let (dense, _) = create(&log, "a");
        let end = append(&log, vec![event(dense, 0, "x", false)]).end;
        drop(log.ticket(end));
        let mut ticket = pin!(log.ticket(end));
        let mut context = Context::from_waker(Waker::noop());
        let word = std::sync::atomic::AtomicU32::new(0);
        let mut polls = 0;
        while ticket.as_mut().poll(&mut context).map(Result::unwrap) == Poll::Pending {
            polls += 1;
            assert!(polls < 1_000_000, "the background leads for a polled ticket");
            // Lets the background run: the seeded runtime steps a task, a thread yields.
            runtime.yield_now();
            if polls == 1 {
                runtime.wake_all(&word);
            }
        }
        assert!(log.durable() >= end);
        log.close().unwrap();
    });
}

#[test]
fn a_failed_sync_poisons_and_is_never_made_good_by_a_later_one() {
    on_both(|disk, rt| {
        let (log, _) = open(disk, rt());
        let (dense, _) = create(&log, "a");
        let safe = append(&log, vec![event(dense, 0, "safe", false)]).end;
        log.flush(safe, Durability::Durable).unwrap();
        disk.fail_from(DiskOp::Sync, 0, io::ErrorKind::Other);
        let end = append(&log, vec![event(dense, 1, "lost", false)]).end;
        let error = log.flush(end, Durability::Durable).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Poisoned, "{error}");
        disk.clear_faults();
        assert!(log.flush(end, Durability::Durable).unwrap_err().is_poisoned());
        assert!(log.append(&[event(dense, 2, "never", false)]).unwrap_err().is_poisoned());
        assert!(log.durable() < end && log.durable() >= safe);
        assert_eq!(texts(&log, "a").len(), 2, "reading goes on, above the durable mark too (G5)");
        assert!(log.close().unwrap_err().is_poisoned());
        drop(log);
        let (log, report) = open(disk, rt());
        assert!(report.losses.is_empty(), "{report:?}");
        let back = texts(&log, "a");
        assert!(back[0].contains("safe") && back.len() <= 2, "{back:?}");
        log.close().unwrap();
    });
}

#[test]
fn a_failed_write_of_accepted_data_poisons() {
    on_both(|disk, rt| {
        let (log, _) = open(disk, rt());
        let (dense, _) = create(&log, "a");
        log.flush(log.tail(), Durability::Durable).unwrap();
        let end = append(&log, vec![event(dense, 0, "x", false)]).end;
        disk.fail_from(DiskOp::Write, 0, io::ErrorKind::Other);
        assert!(log.flush(end, Durability::Durable).unwrap_err().is_poisoned());
        disk.clear_faults();
        assert!(log.append(&[event(dense, 1, "y", false)]).unwrap_err().is_poisoned());
        assert_eq!(texts(&log, "a").len(), 1);
    });
}

#[test]
fn a_full_disk_refuses_what_does_not_fit_and_goes_on_when_there_is_room() {
    on_both(|disk, rt| {
        let (log, _) = open(disk, rt());
        let (dense, _) = create(&log, "a");
        let text = "w".repeat(1000);
        disk.set_free_space(Some(0));
        let mut seq = 0;
        let refused = loop {
            match log.append(&[event(dense, seq, &text, false)]) {
                Ok(appended) => {
                    log.flush(appended.end, Durability::Durable).unwrap();
                    seq += 1;
                }
                Err(error) if error.is_backpressure() => {
                    if let Err(error) = log.wait_for_room(2000) {
                        break error;
                    }
                }
                Err(error) => break error,
            }
            assert!(seq < 1000, "the first segment alone has no room for that");
        };
        assert!(refused.is_full(), "{refused:?}");
        assert!(seq > 10);
        assert_eq!(texts(&log, "a").len() as u64, seq, "what was accepted is there, and readable");
        disk.set_free_space(None);
        // A preparation that failed before the space was freed may still have to be told.
        while let Err(error) = log.append(&[event(dense, seq, &text, false)]) {
            assert!(error.is_full() || error.is_backpressure(), "{error}");
            let _ = log.wait_for_room(2000);
        }
        log.close().unwrap();
        drop(log);
        let (log, report) = open(disk, rt());
        assert!(report.losses.is_empty() && report.cut.is_empty(), "{report:?}");
        assert_eq!(texts(&log, "a").len() as u64, seq + 1);
    });
}

#[test]
fn many_threads_flush_their_own_sessions() {
    let disk = SimDisk::new();
    let (log, _) = open(&disk, Arc::new(RealRuntime::new()));
    let sessions: Vec<u64> = (0..8).map(|n| create(&log, &format!("s{n}")).0).collect();
    std::thread::scope(|scope| {
        for dense in &sessions {
            let log = &log;
            scope.spawn(move || {
                for seq in 0..200 {
                    let end =
                        append(log, vec![event(*dense, seq, "text of some length to rotate", false)]).end;
                    log.flush(end, Durability::Durable).unwrap();
                }
            });
        }
    });
    let counters = log.counters();
    assert!(counters.syncs < 1600, "flushes share syncs: {}", counters.syncs);
    for n in 0..8 {
        assert_eq!(texts(&log, &format!("s{n}")).len(), 200);
    }
    log.close().unwrap();
}

#[test]
fn a_segment_is_extended_before_it_is_started() {
    on_both(|disk, rt| {
        // Larger than what is prepared at first, and smaller than what may be unwritten.
        let options = LogOptions { segment_bytes: 2 << 20, ..LogOptions::default() };
        let (log, _) = Log::open_writer(Arc::new(disk.clone()), rt(), options, true).unwrap();
        let (dense, _) = create(&log, "a");
        let text = "x".repeat(100 << 10);
        for seq in 0..60 {
            let entry = event(dense, seq, &text, false);
            while let Err(error) = log.append(std::slice::from_ref(&entry)) {
                assert!(error.is_backpressure(), "{error}");
                log.wait_for_room(entry.record.stored_len()).unwrap();
            }
        }
        assert_eq!(texts(&log, "a").len(), 60);
        log.close().unwrap();
    });
}

#[test]
fn what_is_appended_in_large_pieces_is_written_once_and_survives_a_power_cut() {
    on_both(|disk, rt| {
        let options =
            LogOptions { segment_bytes: 1 << 20, unflushed_bytes: 128 << 10, ..LogOptions::default() };
        let (log, _) = Log::open_writer(Arc::new(disk.clone()), rt(), options, true).unwrap();
        let (dense, _) = create(&log, "a");
        let text = "x".repeat(1000);
        let (before, mut end) = (disk.counters().written_bytes, Lsn::NONE);
        for batch in 0..100 {
            let seqs = batch * 30..(batch + 1) * 30;
            let entries: Vec<Entry> = seqs.map(|seq| event(dense, seq, &text, seq % 30 < 29)).collect();
            end = loop {
                match log.append(&entries) {
                    Err(error) if error.is_backpressure() => log.wait_for_room(40_000).unwrap(),
                    other => break other.unwrap().end,
                }
            };
        }
        log.flush(end, Durability::Durable).unwrap();
        let (written, of_log) = (disk.counters().written_bytes - before, log.counters().bytes_written);
        assert!(of_log > 3_000_000, "{of_log}");
        assert!(written < of_log * 3 / 2, "{written} bytes written for {of_log} bytes of log");
        for choice in 0..8 {
            let disk = disk.crash(choice);
            let (log, report) =
                Log::open_writer(Arc::new(disk), Arc::new(SeededRuntime::new(1)), small(), true).unwrap();
            assert!(report.losses.is_empty(), "{report:?}");
            assert_eq!(texts(&log, "a").len(), 3000);
            log.close().unwrap();
        }
        log.close().unwrap();
    });
}

/// A caller that does not know how long its append is encoded, and asks for less room than that, waits for a write
/// and does not spin until there is one.
#[test]
fn an_append_that_was_refused_for_the_bound_waits_for_a_write_whatever_it_asks_for() {
    on_both(|disk, rt| {
        let options = LogOptions { unflushed_bytes: 4000, ..small() };
        let (log, _) = Log::open_writer(Arc::new(disk.clone()), rt(), options, true).unwrap();
        let (dense, _) = create(&log, "a");
        log.flush(log.tail(), Durability::Durable).unwrap();
        let (text, mut refused) = ("x".repeat(900), 0);
        for seq in 0..40 {
            let entries = [event(dense, seq, &text, false)];
            while let Err(error) = log.append(&entries) {
                assert!(error.is_backpressure(), "{error}");
                refused += 1;
                assert!(refused < 100, "no write came between two refusals");
                log.wait_for_room(0).unwrap();
            }
        }
        assert!(refused > 3, "{refused}");
        log.close().unwrap();
    });
}

/// However the keeper's steps fall between those of a commit: a while after everything was acknowledged, a frame promises
/// all of it (E1).
#[test]
fn the_witness_comes_whenever_the_keeper_looks() {
    for seed in 0..150 {
        let scheduler = Scheduler::new(seed);
        let inside = scheduler.clone();
        let ran = scheduler.run(move || {
            let disk = SimDisk::new();
            let pausing = inside.clone();
            disk.on_pause(move |op| pausing.pause(op));
            let rt: Arc<dyn Runtime> = Arc::new(inside.clone());
            let (log, _) = Log::open_writer(Arc::new(disk.clone()), rt, small(), true).unwrap();
            let end = create(&log, "a").1.end;
            // Also long after it was drained to the page cache, when the keeper has nothing to do any more.
            inside.sleep(std::time::Duration::from_millis(seed % 30));
            log.flush(end, Durability::Durable).unwrap();
            inside.sleep(std::time::Duration::from_millis(200));
            let covered = log.shared().state().writer().unwrap().is_witnessed();
            log.close().unwrap();
            covered
        });
        assert_eq!((ran.value, ran.failure), (Some(true), None), "seed {seed}");
    }
}
