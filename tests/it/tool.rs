//! The real binary, run on a store of its own.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

/// A folder with room for a store and files.
pub(crate) struct Tool {
    folder: TempDir,
}

/// What a command gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn of(output: Output) -> Self {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Its standard output as JSON, a value a line.
    pub(crate) fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The one line of JSON that it printed.
    pub(crate) fn one(&self) -> Value {
        let mut lines = self.json();
        assert_eq!(lines.len(), 1, "{}", self.out);
        lines.remove(0)
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.out, self.err);
        self
    }
}

impl Tool {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.path("store")
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file below the folder.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sessionlog"));
        command.env_remove("SESSIONLOG_STORE").current_dir(self.folder.path());
        command.arg("--store").arg(self.store()).args(args);
        command
    }

    /// Runs a command to its end.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Ran {
        Ran::of(self.command(args).stdin(Stdio::null()).output().unwrap())
    }

    /// Imports a file that is made of these lines.
    pub(crate) fn import(&self, name: &str, lines: &[impl AsRef<str>]) -> Ran {
        let file = self.file(name, lines_of(lines));
        self.run(["import".as_ref(), file.as_os_str()])
    }

    pub(crate) fn recorder(&self) -> Recorder {
        let mut child =
            self.command(["record"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().unwrap());
        Recorder { child, to, from }
    }
}

pub(crate) fn lines_of(lines: &[impl AsRef<str>]) -> String {
    lines.iter().map(|line| format!("{}\n", line.as_ref())).collect()
}

/// The shared set, if it is there.
pub(crate) fn shared(below: &str) -> Option<PathBuf> {
    let root = std::env::var_os("SESSIONLOG_SHARED")
        .map_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared"), PathBuf::from);
    let path = root.join(below);
    if !path.exists() {
        eprintln!("skipped: {} is not there", path.display());
        return None;
    }
    Some(path)
}

/// A running `record`.
pub(crate) struct Recorder {
    pub(crate) child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
}

impl Recorder {
    pub(crate) fn send(&mut self, bytes: impl AsRef<[u8]>) {
        let to = self.to.as_mut().unwrap();
        to.write_all(bytes.as_ref()).unwrap();
        to.flush().unwrap();
    }

    /// The next answer.
    pub(crate) fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.from.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    pub(crate) fn ask(&mut self, line: &str) -> Value {
        self.send(format!("{line}\n"));
        self.answer()
    }

    /// Asks, and gives the answer's members behind `ok`.
    #[track_caller]
    pub(crate) fn ok(&mut self, line: &str) -> Value {
        let answer = self.ask(line);
        assert_eq!(answer["ok"], true, "{line} -> {answer}");
        answer
    }

    /// Asks, and gives the kind of the refusal.
    #[track_caller]
    pub(crate) fn refused(&mut self, line: &str) -> String {
        let answer = self.ask(line);
        assert_eq!(answer["ok"], false, "{line} -> {answer}");
        assert!(answer["error"]["message"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
        answer["error"]["kind"].as_str().unwrap().to_owned()
    }

    /// Ends the input and waits; what was answered meanwhile, and the exit code.
    pub(crate) fn end(mut self) -> (Vec<Value>, Option<i32>) {
        drop(self.to.take());
        let mut answers = Vec::new();
        let mut line = String::new();
        while self.from.read_line(&mut line).unwrap() > 0 {
            answers.push(serde_json::from_str(&line).unwrap());
            line.clear();
        }
        (answers, self.child.wait().unwrap().code())
    }

    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}
