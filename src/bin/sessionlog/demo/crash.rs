//! Records in a child, and kills it in the middle of a turn.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use super::loss::{Lost, lose_last_sector, settled_end};
use crate::failure::Failure;

/// How recording went, and how it ended.
pub(super) struct Crash {
    /// Flushes that were acknowledged.
    pub(super) flushes: u64,
    /// The last event that was acknowledged.
    pub(super) acknowledged: u64,
    /// The last event that had been appended.
    pub(super) written: u64,
    /// The process that was killed, and the signal that did it.
    pub(super) process: u32,
    pub(super) signal: i32,
    pub(super) lost: Lost,
}

/// Runs the child on the store in `store` to its end.
pub(super) fn record_and_kill(store: &Path, allow_network_fs: bool) -> Result<Crash, Failure> {
    let program = std::env::current_exe().map_err(|error| words("find this program", &error))?;
    let child = Command::new(program)
        .arg("demo-child")
        .arg("--store")
        .arg(store)
        .args(allow_network_fs.then_some("--allow-network-fs"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| words("start the recorder", &error))?;
    let mut recorder = Recorder { child };
    recorder.talk(store)
}

struct Recorder {
    child: Child,
}

impl Recorder {
    fn talk(&mut self, store: &Path) -> Result<Crash, Failure> {
        let (Some(mut to), Some(from)) = (self.child.stdin.take(), self.child.stdout.take()) else {
            return Err(Failure::Words("the recorder has no pipes".to_owned()));
        };
        let mut from = BufReader::new(from);
        let (mut flushes, mut acknowledged) = (0, 0);
        loop {
            match next(&mut from)? {
                (word, Some(seq)) if word == "acknowledged" => {
                    flushes += 1;
                    acknowledged = seq;
                }
                (word, None) if word == "waiting" => break,
                (word, _) => return Err(Failure::Words(format!("the recorder said {word:?}"))),
            }
        }
        // What is on the disk up to here was acknowledged: it is not to be touched.
        let end = settled_end(store)?;
        go_on(&mut to)?;
        let (word, written) = next(&mut from)?;
        let Some(written) = written.filter(|_| word == "written") else {
            return Err(Failure::Words(format!("the recorder said {word:?}")));
        };
        self.child.kill().map_err(|error| words("kill the recorder", &error))?;
        let status = self.child.wait().map_err(|error| words("wait for the recorder", &error))?;
        let Some(signal) = status.signal() else {
            return Err(Failure::Words(format!("the recorder was not killed: {status}")));
        };
        let lost = lose_last_sector(store, &end)?;
        Ok(Crash { flushes, acknowledged, written, process: self.child.id(), signal, lost })
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // Where something failed, it may still be running; where it was killed, these do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next(from: &mut BufReader<ChildStdout>) -> Result<(String, Option<u64>), Failure> {
    let mut line = String::new();
    let length = from.read_line(&mut line).map_err(|error| words("hear from the recorder", &error))?;
    if length == 0 {
        return Err(Failure::Words("the recorder ended too early".to_owned()));
    }
    let mut parts = line.split_whitespace();
    let word = parts.next().unwrap_or_default().to_owned();
    Ok((word, parts.next().and_then(|seq| seq.parse().ok())))
}

fn go_on(to: &mut ChildStdin) -> Result<(), Failure> {
    to.write_all(b"\n").and_then(|()| to.flush()).map_err(|error| words("talk to the recorder", &error))
}

fn words(what: &str, error: &std::io::Error) -> Failure {
    Failure::Words(format!("{what}: {error}"))
}
