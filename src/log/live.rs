//! The in-memory index: what the log knows beyond the sealed segments' index files and the directory runs.
//!
//! It holds the tables of the segments that have no index file yet (the active one above all) and the state of
//! every session that was touched since the last checkpoint or is attached. A session that nobody opened and
//! that a run covers costs nothing here. It is derived: recovery rebuilds it from the log.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::event::Class;
use crate::format::index::{SegmentTable, TableEvent};
use crate::format::lsn::{Binding, Lsn};
use crate::format::names;
use crate::mutation::{self, Mutation};

use super::directory::Directory;
use super::orphans::Orphans;
use super::types::{Fork, Listed, Note, SessionEntry};

/// A session in memory.
#[derive(Debug, Clone)]
pub(crate) struct LiveEntry {
    pub entry: SessionEntry,
    /// How many handles need it to stay here.
    pub attached: u32,
    /// Newest record that changed it: a run that covers this makes the entry redundant.
    pub changed: Lsn,
}

#[derive(Debug)]
pub(crate) struct LiveIndex {
    pub directory: Arc<Directory>,
    tables: BTreeMap<u32, Arc<SegmentTable>>,
    bindings: BTreeMap<u32, Binding>,
    /// Each in a place of its own: a map twice as large as its entries would be the most that opening costs (G7).
    entries: HashMap<u64, Box<LiveEntry>>,
    orphans: Orphans,
    by_id: HashMap<Arc<str>, Vec<u64>>,
    children: HashMap<u64, Vec<u64>>,
    pub next_dense: u64,
}

impl LiveIndex {
    pub(crate) fn new(directory: Arc<Directory>, next_dense: u64) -> Self {
        Self {
            directory,
            tables: BTreeMap::new(),
            bindings: BTreeMap::new(),
            entries: HashMap::new(),
            orphans: Orphans::default(),
            by_id: HashMap::new(),
            children: HashMap::new(),
            next_dense: next_dense.max(1),
        }
    }

    pub(crate) fn add_table(&mut self, table: SegmentTable, binding: Binding) {
        self.bindings.insert(table.key().segment, binding);
        self.tables.insert(table.key().segment, Arc::new(table));
    }

    pub(crate) fn table(&self, segment: u32) -> Option<&Arc<SegmentTable>> {
        self.tables.get(&segment)
    }

    pub(crate) fn table_mut(&mut self, segment: u32) -> Option<&mut SegmentTable> {
        self.tables.get_mut(&segment).map(Arc::make_mut)
    }

    pub(crate) fn drop_table(&mut self, segment: u32) {
        self.tables.remove(&segment);
        self.bindings.remove(&segment);
    }

    /// What the records of a segment without an index file are bound to.
    pub(crate) fn binding(&self, segment: u32) -> Option<Binding> {
        self.bindings.get(&segment).copied()
    }

    /// The newest segment of at most this number that has its table here.
    pub(crate) fn table_at_or_before(&self, segment: u32) -> Option<u32> {
        self.tables.range(..=segment).next_back().map(|(number, _)| *number)
    }

    pub(crate) fn table_numbers(&self) -> Vec<u32> {
        self.tables.keys().copied().collect()
    }

    pub(crate) fn entry(&self, dense: u64) -> Option<SessionEntry> {
        match self.entries.get(&dense) {
            Some(live) => Some(live.entry.clone()),
            None => self.orphans.get(dense),
        }
    }

    /// Whether the session is in memory.
    pub(crate) fn knows(&self, dense: u64) -> bool {
        self.entries.contains_key(&dense) || self.orphans.contains(dense)
    }

    /// Dense ids in memory that carry `id`, oldest first.
    pub(crate) fn by_id(&self, id: &str) -> Vec<u64> {
        let mut found = self.by_id.get(id).cloned().unwrap_or_default();
        if let Some(dense) = self.orphans.by_id(id)
            && let Err(at) = found.binary_search(&dense)
        {
            found.insert(at, dense);
        }
        found
    }

    pub(crate) fn children(&self, dense: u64) -> &[u64] {
        self.children.get(&dense).map_or(&[], Vec::as_slice)
    }

    /// Every session in memory, in no order.
    pub(crate) fn all(&self) -> impl Iterator<Item = Listed> {
        let full = self.entries.values().map(|live| Listed::of(&live.entry));
        let orphan =
            |(dense, deleted, _): (u64, bool, Lsn)| Listed { dense, is_visible: !deleted, is_fork: false };
        full.chain(self.orphans.marks().map(orphan))
    }

    /// Sessions that were staged, and neither published nor deleted.
    pub(crate) fn staged(&self) -> impl Iterator<Item = u64> {
        let entries = self.entries.values().map(|live| &live.entry);
        entries.filter(|entry| entry.staged && !entry.deleted).map(|entry| entry.dense)
    }

    /// Takes a session for published, in memory.
    pub(crate) fn show(&mut self, dense: u64) {
        if let Some(live) = self.entries.get_mut(&dense) {
            live.entry.staged = false;
        }
    }

    /// Brings a session in from a run, or finds it here.
    pub(crate) fn adopt(&mut self, entry: SessionEntry) -> &mut LiveEntry {
        let dense = entry.dense;
        let (entry, changed) = self.orphans.remove(dense).unwrap_or((entry, Lsn::NONE));
        if !self.entries.contains_key(&dense) {
            self.index_entry(&entry);
        }
        self.entries.entry(dense).or_insert_with(|| Box::new(LiveEntry { entry, attached: 0, changed }))
    }

    /// Notes a session that is neither here nor in a run: its create record is lost.
    pub(crate) fn adopt_orphan(&mut self, dense: u64) {
        self.orphans.change(dense, Lsn::NONE, |_| {});
    }

    fn index_entry(&mut self, entry: &SessionEntry) {
        let same = self.by_id.entry(Arc::clone(&entry.id)).or_default();
        if let Err(at) = same.binary_search(&entry.dense) {
            same.insert(at, entry.dense);
        }
        if let Some(fork) = entry.fork {
            let children = self.children.entry(fork.parent).or_default();
            if let Err(at) = children.binary_search(&entry.dense) {
                children.insert(at, entry.dense);
            }
        }
    }

    pub(crate) fn attach(&mut self, dense: u64) {
        if let Some(live) = self.entries.get_mut(&dense) {
            live.attached = live.attached.saturating_add(1);
        }
    }

    pub(crate) fn detach(&mut self, dense: u64) {
        if let Some(live) = self.entries.get_mut(&dense) {
            live.attached = live.attached.saturating_sub(1);
        }
        self.forget(dense, self.directory.to);
    }

    /// Brings in a session as it was at `place`, unless it is here and so at least as new. No run from before counts
    /// for it any more.
    pub(crate) fn restore(&mut self, entry: SessionEntry, place: Lsn) {
        let live = self.adopt(entry);
        live.changed = live.changed.max(place);
    }

    /// As [`restore`](Self::restore), for sessions whose create record is lost.
    pub(crate) fn restore_orphans(&mut self, orphans: Orphans) {
        let Self { entries, orphans: here, .. } = self;
        for (dense, _, changed) in orphans.marks() {
            if let Some(live) = entries.get_mut(&dense) {
                live.changed = live.changed.max(changed);
            }
        }
        here.restore(orphans, |dense| entries.contains_key(&dense));
    }

    /// Takes in one record at `place`; `stored` is its length.
    pub(crate) fn note(&mut self, note: &Note, place: Lsn, stored: usize) -> Result<()> {
        let segment = place.segment();
        match note {
            Note::Event { dense, seq, class, op, time_ms } => {
                let event = TableEvent {
                    dense: *dense,
                    seq: *seq,
                    offset: place.offset(),
                    class: *class,
                    op: *op,
                    time_ms: *time_ms,
                    bytes: stored as u64,
                };
                return self.note_event(&event, place);
            }
            Note::Create { dense, id, header, staged } => {
                self.create(new_entry(*dense, id, header, *staged, None), place);
            }
            Note::Fork { dense, id, header, fork, staged, turn_open } => {
                let entry = new_entry(*dense, id, header, *staged, Some(*fork));
                self.create(SessionEntry { open_turn: *turn_open, ..entry }, place);
            }
            Note::Delete { dense } => self.change(*dense, place, |entry| entry.deleted = true),
            Note::Publish { dense } => self.change(*dense, place, |entry| entry.staged = false),
            Note::AcceptLoss { dense, next_seq } => self.change(*dense, place, |entry| {
                entry.next_seq = entry.next_seq.max(*next_seq);
                entry.accepted = place;
            }),
        }
        if let Some(table) = self.table_mut(segment) {
            table.add_control(place.offset());
        }
        Ok(())
    }

    fn create(&mut self, entry: SessionEntry, place: Lsn) {
        self.next_dense = self.next_dense.max(entry.dense.saturating_add(1));
        self.adopt(entry).changed = place;
    }

    fn change(&mut self, dense: u64, place: Lsn, change: impl FnOnce(&mut SessionEntry)) {
        if let Some(live) = self.entries.get_mut(&dense) {
            change(&mut live.entry);
            live.changed = place;
        } else if self.orphans.contains(dense) {
            self.orphans.change(dense, place, change);
        }
    }

    fn note_event(&mut self, event: &TableEvent, place: Lsn) -> Result<()> {
        let segment = place.segment();
        let Some(table) = self.tables.get_mut(&segment).map(Arc::make_mut) else {
            return Err(Error::new(ErrorKind::Internal, format!("segment {segment} has no table")));
        };
        let live = self.entries.get_mut(&event.dense);
        let fresh = table.add_event(event).map_err(|fault| {
            let file = names::segment(segment);
            Error::corrupt(
                file,
                u64::from(event.offset),
                format!("session {} seq {}: {fault}", event.dense, event.seq),
            )
        })?;
        let mut before = 0;
        let mut take = |entry: &mut SessionEntry| {
            before = entry.last_segment;
            update(entry, event, segment);
        };
        match live {
            Some(live) => {
                take(&mut live.entry);
                live.changed = place;
            }
            None if self.orphans.contains(event.dense) => self.orphans.change(event.dense, place, take),
            None => return Ok(()),
        }
        if fresh {
            table.set_prev(event.dense, before);
        }
        Ok(())
    }

    /// What a directory that reaches up to `to` makes redundant here.
    pub(crate) fn covered(&self, to: Lsn) -> Vec<u64> {
        let early = mutation::is_on(Mutation::ForgottenTooEarly);
        let covered = |live: &LiveEntry| live.attached == 0 && (live.changed < to || early);
        let full = self.entries.iter().filter(|(_, live)| covered(live)).map(|(dense, _)| *dense);
        full.chain(self.orphans.marks().filter(|(_, _, changed)| *changed < to).map(|(dense, _, _)| dense))
            .collect()
    }

    /// Forgets a session that the directory, which reaches up to `to`, knows and that nobody is attached to.
    pub(crate) fn forget(&mut self, dense: u64, to: Lsn) {
        if self.orphans.changed(dense).is_some_and(|changed| changed < to) {
            self.orphans.remove(dense);
        }
        let early = mutation::is_on(Mutation::ForgottenTooEarly);
        if self.entries.get(&dense).is_none_or(|live| live.attached > 0 || live.changed >= to && !early) {
            return;
        }
        let Some(live) = self.entries.remove(&dense) else { return };
        remove_from(&mut self.by_id, &live.entry.id, dense);
        if let Some(fork) = live.entry.fork {
            remove_from(&mut self.children, &fork.parent, dense);
        }
    }
}

fn update(entry: &mut SessionEntry, event: &TableEvent, segment: u32) {
    entry.next_seq = entry.next_seq.max(event.seq.saturating_add(1));
    entry.bytes = entry.bytes.saturating_add(event.bytes);
    entry.first_time = entry.first_time.or(Some(event.time_ms));
    entry.last_time = Some(event.time_ms);
    entry.last_segment = segment;
    match event.class {
        Class::TurnStart => entry.open_turn = true,
        Class::TurnEnd => entry.open_turn = false,
        _ => {}
    }
}

/// A session without events of its own.
pub(crate) fn new_entry(
    dense: u64,
    id: &Arc<str>,
    header: &Arc<str>,
    staged: bool,
    fork: Option<Fork>,
) -> SessionEntry {
    let cut = fork.map_or(0, |fork| fork.cut);
    SessionEntry {
        dense,
        id: Arc::clone(id),
        header: Arc::clone(header),
        own_first: cut,
        next_seq: cut,
        bytes: 0,
        first_time: None,
        last_time: None,
        open_turn: false,
        fork,
        staged,
        deleted: false,
        last_segment: 0,
        accepted: Lsn::NONE,
    }
}

fn remove_from<K: std::hash::Hash + Eq>(map: &mut HashMap<K, Vec<u64>>, key: &K, dense: u64) {
    if let Some(list) = map.get_mut(key) {
        list.retain(|other| *other != dense);
        if list.is_empty() {
            map.remove(key);
        }
    }
}
