//! A file of lines for each session, synced behind each line: what people write by hand.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use super::{Fault, Writer};
use crate::reading::{Reading, SESSIONS};

struct Files(Vec<File>);

fn path(directory: &Path, session: u64) -> PathBuf {
    directory.join(format!("{session}.jsonl"))
}

pub fn create(directory: &Path) -> Result<Box<dyn Writer>, Fault> {
    let open = |session| OpenOptions::new().create(true).append(true).open(path(directory, session));
    let files = (0..SESSIONS).map(open).collect::<Result<Vec<_>, _>>()?;
    File::open(directory)?.sync_all()?;
    Ok(Box::new(Files(files)))
}

impl Writer for Files {
    fn append(&mut self, session: u64, _: u64, line: &str) -> Result<(), Fault> {
        let file =
            usize::try_from(session).ok().and_then(|at| self.0.get_mut(at)).ok_or("no such session")?;
        file.write_all(format!("{line}\n").as_bytes())?;
        Ok(file.sync_data()?)
    }
}

pub fn read(directory: &Path) -> Reading {
    let mut reading = Reading::default();
    for session in 0..SESSIONS {
        let bytes = match fs::read(path(directory, session)) {
            Ok(bytes) => bytes,
            Err(error) => {
                reading.complaints.push(error.to_string());
                continue;
            }
        };
        for (number, line) in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).enumerate() {
            // As a careful reader does it: a line that is no event is told, and the next one tried.
            let event = std::str::from_utf8(line)
                .ok()
                .and_then(|line| sessionlog::event::Event::parse_line(line).ok());
            match event {
                Some(event) => reading.events.push((session, event.seq(), event.to_line())),
                None => reading.complaints.push(format!("line {number} is no JSON")),
            }
        }
    }
    reading
}
