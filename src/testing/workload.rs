//! A scripted, seeded use of a store on the simulated disk: append, batch, import, flush, rotate, seal, fork, delete,
//! close, reopen. It keeps the [`Model`] as it goes, so that a crash at any disk call can be judged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use crate::disk::Disk;
use crate::{
    CreateOptions, Durability, Error, ErrorKind, Event, ForkOptions, NewEvent, Result, Session,
    SessionReader, SessionStore, StoreOptions, Time,
};

use super::model::{Deletion, Model};
use super::oracle::settle;
use super::{Random, SeededRuntime, SimDisk};

/// One thing that a workload does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// One event of some session, so many bytes of text.
    Append(usize),
    /// A batch of so many events.
    Batch(usize),
    /// So many events come in for some session at once; a dozen are more than one batch holds. No script of
    /// [`Workload::script`] has it.
    Import(usize),
    /// Flushes one session.
    Flush,
    /// Flushes the store.
    FlushAll,
    /// A new session.
    Create,
    /// A fork of some session at some place.
    Fork,
    /// Deletes some session.
    Delete,
    /// Lets virtual time pass: drains, witness frames, preparation, indexing.
    Idle(u64),
    /// Closes the store and opens it again.
    Reopen,
    /// The process dies without closing the store, and another one opens it. No script of
    /// [`Workload::script`] has it.
    Kill,
}

/// See the module.
#[derive(Debug)]
pub struct Workload {
    disk: SimDisk,
    /// The runtime of the store that is open.
    pub runtime: Arc<SeededRuntime>,
    /// What the store must hold. Shared, so that a hook on the disk can take a copy at any call.
    pub model: Arc<Mutex<Model>>,
    /// Ops that were refused for want of space, with nothing accepted.
    pub refused: u64,
    /// Texts in a batch are shorter than this.
    pub longest_in_batch: usize,
    random: Random,
    store: Option<SessionStore>,
    live: BTreeMap<String, Session>,
    made: u64,
}

/// Bytes past which a simulated store stages what comes in: a few events.
const STAGED_PAST: usize = 1500;

/// Options of every simulated store: the smallest segments, and so few unflushed bytes that larger batches count as bulk.
#[must_use]
pub fn options(disk: &SimDisk, runtime: &Arc<SeededRuntime>) -> StoreOptions {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let runtime = Arc::clone(runtime);
    let options = StoreOptions::new().segment_bytes(64 << 10).unflushed_bytes(64 << 10);
    options.staged_past(STAGED_PAST).disk(disk).runtime(runtime)
}

/// Opens a store for writing on a simulated disk.
///
/// # Errors
/// Those of [`StoreOptions::open`].
pub fn open(disk: &SimDisk, seed: u64) -> Result<(SessionStore, Arc<SeededRuntime>)> {
    let runtime = Arc::new(SeededRuntime::new(seed));
    let store = options(disk, &runtime).create(true).open("")?;
    Ok((store, runtime))
}

/// The event that a workload appends as `seq`, and the line that it must be read back as.
///
/// # Errors
/// None: the text needs no escaping.
pub fn event(seq: usize, text: &str) -> Result<(NewEvent, String)> {
    let time = 1_700_000_000_000 + i64::try_from(seq).unwrap_or(0);
    let (kind, data) = match seq % 3 {
        0 => ("plugin/note", format!(r#"{{"note":"{text}"}}"#)),
        1 => (
            "assistant/chunk",
            format!(r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#),
        ),
        _ => ("tool/progress", format!(r#"{{"text":"{text}","at":{seq}}}"#)),
    };
    let line = format!(r#"{{"type":"{kind}","seq":{seq},"time":{time},"data":{data}}}"#);
    Ok((NewEvent::raw(kind, &data)?.with_time(Time::from_millis(time)), line))
}

impl Workload {
    /// Opens the store; nothing is done yet.
    ///
    /// # Errors
    /// The store cannot be opened.
    pub fn new(disk: &SimDisk, seed: u64) -> Result<Self> {
        let (store, runtime) = open(disk, seed)?;
        Ok(Self {
            disk: disk.clone(),
            runtime,
            model: Arc::default(),
            refused: 0,
            longest_in_batch: 500,
            random: Random::new(seed),
            store: Some(store),
            live: BTreeMap::new(),
            made: 0,
        })
    }

    /// A script of `steps` ops that meets everything: several segments, forks, deletions, reopenings.
    #[must_use]
    pub fn script(seed: u64, steps: usize) -> Vec<Op> {
        let mut random = Random::new(seed ^ 0x5c21);
        let mut ops = vec![Op::Create, Op::Append(40), Op::FlushAll, Op::Create];
        while ops.len() < steps {
            ops.push(match random.below(100) {
                0..40 => Op::Append(random.index(300)),
                40..48 => Op::Append(2000 + random.index(9000)),
                48..60 => Op::Batch(2 + random.index(4)),
                60..74 => Op::Flush,
                74..78 => Op::FlushAll,
                78..83 => Op::Create,
                83..88 => Op::Fork,
                88..91 => Op::Delete,
                91..97 => Op::Idle(1 + random.below(30)),
                _ => Op::Reopen,
            });
        }
        ops
    }

    /// Does `ops` one after the other.
    ///
    /// # Errors
    /// The first that is no want of space.
    pub fn run(&mut self, ops: &[Op]) -> Result<()> {
        ops.iter().try_for_each(|op| self.step(*op))
    }

    /// Does one op. A refusal for want of space is counted, and is no error.
    ///
    /// # Errors
    /// Whatever else the store says.
    pub fn step(&mut self, op: Op) -> Result<()> {
        let done = match op {
            Op::Append(length) => self.append(&[length]),
            Op::Batch(count) => {
                let longest = self.longest_in_batch;
                let lengths: Vec<usize> = (0..count).map(|_| self.random.index(longest)).collect();
                self.append(&lengths)
            }
            Op::Import(count) => self.import(count),
            Op::Flush => self.flush(),
            Op::FlushAll => self.flush_all(),
            Op::Create => self.create(),
            Op::Fork => self.fork(),
            Op::Delete => self.delete(),
            Op::Idle(millis) => {
                self.runtime.run_for(Duration::from_millis(millis));
                Ok(())
            }
            Op::Reopen => self.reopen(),
            Op::Kill => self.kill(),
        };
        match done {
            Err(error) if error.is_full() => {
                self.refused += 1;
                Ok(())
            }
            other => other,
        }
    }

    /// The disk, as the process that has the store open now.
    #[must_use]
    pub fn disk(&self) -> &SimDisk {
        &self.disk
    }

    /// The store.
    ///
    /// # Errors
    /// An op that closes it failed.
    pub fn store(&self) -> Result<&SessionStore> {
        self.store.as_ref().ok_or_else(|| Error::new(ErrorKind::Closed, "the workload's store is closed"))
    }

    /// Closes the store, and says whether everything is durable.
    ///
    /// # Errors
    /// The close failed.
    pub fn close(&mut self) -> Result<()> {
        self.live.clear();
        let Some(store) = self.store.take() else { return Ok(()) };
        store.close()?;
        self.model.lock().acknowledge_all();
        Ok(())
    }

    fn reopen(&mut self) -> Result<()> {
        self.close()?;
        let (store, runtime) = open(&self.disk, self.random.next_u64())?;
        (self.store, self.runtime) = (Some(store), runtime);
        Ok(())
    }

    fn kill(&mut self) -> Result<()> {
        self.disk = self.disk.kill();
        self.live.clear();
        self.store = None;
        let (store, runtime) = open(&self.disk, self.random.next_u64())?;
        settle(&store, &mut self.model.lock())?;
        (self.store, self.runtime) = (Some(store), runtime);
        Ok(())
    }

    fn some_id(&mut self) -> Option<String> {
        let ids = self.model.lock().undeleted();
        self.random.pick(&ids).cloned()
    }

    /// The live session of that id, resumed if it is not.
    fn session(&mut self, id: &str) -> Result<Session> {
        if let Some(session) = self.live.get(id) {
            return Ok(session.clone());
        }
        let session = self.store()?.resume(id)?.session;
        self.live.insert(id.to_owned(), session.clone());
        Ok(session)
    }

    fn append(&mut self, lengths: &[usize]) -> Result<()> {
        let Some(id) = self.some_id() else { return Ok(()) };
        let session = self.session(&id)?;
        let first = usize::try_from(session.seq()).unwrap_or(0);
        let mut made = Vec::with_capacity(lengths.len());
        for (index, length) in lengths.iter().enumerate() {
            made.push(event(first + index, &self.text(*length))?);
        }
        self.model.lock().attempt(&id, made.iter().map(|(_, line)| line.clone()));
        let events: Vec<NewEvent> = made.into_iter().map(|(event, _)| event).collect();
        let done = self.append_patiently(&session, events);
        if done.is_err() {
            self.model.lock().retract(&id);
        }
        done
    }

    /// All of the session as a file would bring it, and `count` events more.
    fn import(&mut self, count: usize) -> Result<()> {
        let Some(id) = self.some_id() else { return Ok(()) };
        if let Some(session) = self.live.remove(&id) {
            session.detach();
        }
        let reader = self.store()?.open(&id)?;
        let first = usize::try_from(reader.seq()).unwrap_or(0);
        let mut lines = Vec::with_capacity(count);
        for seq in first..first + count {
            let length = self.random.index(400);
            lines.push(event(seq, &self.text(length))?.1);
        }
        self.model.lock().attempt(&id, lines.iter().cloned());
        let done = self.bring_in(&reader, &lines);
        if done.is_err() {
            self.model.lock().retract(&id);
        }
        done
    }

    fn bring_in(&self, stored: &SessionReader, lines: &[String]) -> Result<()> {
        let mut import = self.store()?.import(stored.header().clone())?;
        for event in stored.events() {
            import.push(&event?)?;
        }
        for line in lines {
            import.push(&Event::parse_line(line)?)?;
        }
        import.publish(Durability::Accepted).map(|_| ())
    }

    fn append_patiently(&self, session: &Session, events: Vec<NewEvent>) -> Result<()> {
        let bytes: usize = events.iter().map(|event| event.data().len() + 256).sum();
        loop {
            match session.append_batch(events.clone()) {
                Err(error) if error.is_backpressure() => self.store()?.wait_for_room(bytes)?,
                other => return other.map(|_| ()),
            }
        }
    }

    fn text(&mut self, length: usize) -> String {
        let letters = b"abcdefghijklmnopqrstuvwxyz .,-";
        (0..length).filter_map(|_| self.random.pick(letters).map(|letter| char::from(*letter))).collect()
    }

    fn flush(&mut self) -> Result<()> {
        let Some(id) = self.some_id() else { return Ok(()) };
        let session = self.session(&id)?;
        session.flush()?;
        self.model.lock().acknowledge(&id);
        Ok(())
    }

    fn flush_all(&mut self) -> Result<()> {
        self.store()?.flush()?;
        self.model.lock().acknowledge_all();
        Ok(())
    }

    fn new_id(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}-{}", self.made)
    }

    fn create(&mut self) -> Result<()> {
        let id = self.new_id("made");
        self.model.lock().attempt_session(&id, Vec::new());
        let options = CreateOptions::new().id(&id).cwd("/somewhere").created_at(Time::from_millis(1));
        let made = self.store()?.create(options);
        self.entered(id, made)
    }

    fn fork(&mut self) -> Result<()> {
        let Some(parent) = self.some_id() else { return Ok(()) };
        let mut lines =
            self.model.lock().sessions.get(&parent).map(|known| known.lines.clone()).unwrap_or_default();
        if lines.is_empty() {
            return Ok(());
        }
        let at = self.random.index(lines.len());
        lines.truncate(at + 1);
        let id = self.new_id("fork");
        self.model.lock().attempt_session(&id, lines);
        let options = ForkOptions::new().at(at as u64).id(&id).created_at(Time::from_millis(2));
        let made = self.store()?.fork(&parent, options);
        self.entered(id, made)
    }

    fn entered(&mut self, id: String, made: Result<Session>) -> Result<()> {
        match made {
            Ok(session) => {
                self.live.insert(id, session);
                Ok(())
            }
            Err(error) => {
                if error.is_full() {
                    self.model.lock().sessions.remove(&id);
                }
                Err(error)
            }
        }
    }

    fn delete(&mut self) -> Result<()> {
        let ids = self.model.lock().undeleted();
        if ids.len() < 3 {
            return Ok(());
        }
        let Some(id) = self.random.pick(&ids).cloned() else { return Ok(()) };
        self.live.remove(&id);
        self.model.lock().attempt_delete(&id);
        let done = self.store()?.delete(&id);
        if let Err(error) = &done
            && error.is_full()
            && let Some(known) = self.model.lock().sessions.get_mut(&id)
        {
            known.deletion = Deletion::No;
        }
        done
    }
}
