//! This library, as it is opened by default.

use std::path::Path;

use sessionlog::event::{Event, NewEvent};
use sessionlog::{CreateOptions, Session, SessionStore, StoreOptions};

use super::{Fault, Writer};
use crate::reading::{Reading, SESSIONS};

struct Log {
    sessions: Vec<Session>,
    _store: SessionStore,
}

pub fn create(directory: &Path) -> Result<Box<dyn Writer>, Fault> {
    let store = StoreOptions::new().create(true).open(directory.join("store"))?;
    let sessions = (0..SESSIONS).map(|number| store.create(CreateOptions::new().id(number.to_string())));
    let sessions = sessions.collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(Log { sessions, _store: store }))
}

impl Writer for Log {
    fn append(&mut self, session: u64, _: u64, line: &str) -> Result<(), Fault> {
        let session =
            usize::try_from(session).ok().and_then(|at| self.sessions.get(at)).ok_or("no such session")?;
        session.append(NewEvent::from_event(Event::parse_line(line)?))?;
        Ok(session.flush()?)
    }
}

pub fn read(directory: &Path) -> Reading {
    let store = match StoreOptions::new().open(directory.join("store")) {
        Ok(store) => store,
        Err(error) => return Reading::refused(error),
    };
    let mut reading = Reading::default();
    reading.complaints.extend(store.recovery().losses.iter().map(|loss| format!("{loss:?}")));
    for number in 0..SESSIONS {
        let session = match store.open(&number.to_string()) {
            Ok(session) => session,
            Err(error) => {
                reading.complaints.push(error.to_string());
                continue;
            }
        };
        for event in session.events() {
            match event {
                Ok(event) => reading.events.push((number, event.seq(), event.to_line())),
                Err(error) => reading.complaints.push(error.to_string()),
            }
        }
    }
    reading
}
