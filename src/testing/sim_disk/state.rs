//! All that a simulated disk holds, behind one lock: names, files, the writer's lock, space and faults.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use super::cut::Cut;
use super::fault::{DiskOp, Effect, Fault, Strike, strike};
use super::names::{Entry, Names};
use super::node::Node;
use super::pages::{PAGE, SECTOR};
use super::plan::{FaultPlan, Planned};
use crate::disk::FsKind;
use crate::testing::random::mix;

/// What a name in a directory takes of a limited space.
const NAME_BYTES: u64 = 64;

/// What `free_space` says of a disk without a limit.
const UNLIMITED: u64 = 1 << 40;

#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) owner: u64,
    pub(super) process: u64,
    pub(super) file: u64,
    pub(super) info: String,
}

#[derive(Debug, Clone)]
pub(super) struct State {
    /// Grows with every change: the order of things.
    time: u64,
    next_file: u64,
    pub(super) next_owner: u64,
    pub(super) next_process: u64,
    pub(super) names: Names,
    files: BTreeMap<u64, Arc<Node>>,
    /// Open handles by file.
    opens: BTreeMap<u64, u64>,
    pub(super) held: Option<Held>,
    capacity: Option<u64>,
    pub(super) charge_renames: bool,
    pub(super) lock_follows_name: bool,
    pub(super) read_only: bool,
    pub(super) fs_kind: FsKind,
    pub(super) faults: Vec<Fault>,
    pub(super) planned: Planned,
    /// Older versions of files, for the plan.
    pub(super) kept: Vec<(String, Arc<Node>)>,
    pub(super) stop_at: Option<u64>,
    pub(super) calls: u64,
    /// Whether calls are noted as text too.
    pub(super) traced: bool,
    pub(super) trace: Vec<String>,
    /// Of all calls so far, in their order.
    pub(super) trace_hash: u64,
    pub(super) syncs_blocked: bool,
    pub(super) syncs_waiting: usize,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            time: 0,
            next_file: 1,
            next_owner: 1,
            next_process: 1,
            names: Names::new(),
            files: BTreeMap::new(),
            opens: BTreeMap::new(),
            held: None,
            capacity: None,
            charge_renames: false,
            lock_follows_name: false,
            read_only: false,
            fs_kind: FsKind::Local,
            faults: Vec::new(),
            planned: Planned::default(),
            kept: Vec::new(),
            traced: true,
            trace_hash: 0,
            stop_at: None,
            calls: 0,
            trace: Vec::new(),
            syncs_blocked: false,
            syncs_waiting: 0,
        }
    }

    /// Notes a call and says what strikes it.
    pub(super) fn note(&mut self, op: DiskOp, what: fmt::Arguments<'_>) -> io::Result<(u64, Option<Strike>)> {
        let number = self.calls;
        if self.stop_at.is_some_and(|stop| number >= stop) {
            return Err(io::Error::other("the power was cut (simulated); go on with what crash() leaves"));
        }
        self.calls += 1;
        if self.traced {
            let line = format!("{number} {op} {what}");
            let folded = line
                .bytes()
                .fold(self.trace_hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3));
            self.trace_hash = mix(folded);
            self.trace.push(line);
        }
        if self.planned.is_idle() {
            return Ok((number, strike(&mut self.faults, op)));
        }
        self.befall();
        let struck = strike(&mut self.faults, op).or_else(|| self.planned.strike(op));
        Ok((number, struck))
    }

    pub(super) fn tick(&mut self) -> u64 {
        self.time += 1;
        self.time
    }

    pub(super) fn now(&self) -> u64 {
        self.time
    }

    pub(super) fn file(&self, number: u64) -> io::Result<&Node> {
        self.files.get(&number).map(AsRef::as_ref).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn file_mut(&mut self, number: u64) -> io::Result<&mut Node> {
        self.files.get_mut(&number).map(Arc::make_mut).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(super) fn find(&self, name: &str) -> io::Result<u64> {
        match self.names.get(name) {
            Some(Entry::File(number)) => Ok(number),
            Some(Entry::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    pub(super) fn opened(&mut self, number: u64) {
        *self.opens.entry(number).or_default() += 1;
    }

    pub(super) fn closed(&mut self, number: u64) {
        if let Some(count) = self.opens.get_mut(&number) {
            *count -= 1;
            if *count == 0 {
                self.opens.remove(&number);
                self.forget_unreachable();
            }
        }
    }

    pub(super) fn create(&mut self, name: &str) -> io::Result<u64> {
        self.check_changeable()?;
        if self.names.get(name).is_some() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.check_parent(name)?;
        self.charge(NAME_BYTES)?;
        let number = self.add_file(Node::default());
        let time = self.tick();
        self.names.link(time, name, Entry::File(number));
        Ok(number)
    }

    pub(super) fn create_dir(&mut self, name: &str) -> io::Result<()> {
        self.check_changeable()?;
        match self.names.get(name) {
            Some(Entry::Dir) => return Ok(()),
            Some(Entry::File(_)) => return Err(io::ErrorKind::AlreadyExists.into()),
            None => {}
        }
        self.check_parent(name)?;
        self.charge(NAME_BYTES)?;
        let time = self.tick();
        self.names.link(time, name, Entry::Dir);
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.check_changeable()?;
        self.find(from)?;
        if self.names.get(to) == Some(Entry::Dir) {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        self.check_parent(to)?;
        if self.charge_renames {
            self.charge(NAME_BYTES)?;
        }
        let time = self.tick();
        if from != to {
            self.names.rename(time, from, to);
        }
        self.forget_unreachable();
        Ok(())
    }

    pub(super) fn unlink(&mut self, name: &str) -> io::Result<()> {
        self.check_changeable()?;
        self.find(name)?;
        let time = self.tick();
        self.names.unlink(time, name);
        self.forget_unreachable();
        Ok(())
    }

    /// Writes as much as there is space for; an error then, as the operating system's.
    pub(super) fn write(&mut self, number: u64, bytes: &[u8], off: u64) -> io::Result<()> {
        self.check_changeable()?;
        let len = bytes.len() as u64;
        off.checked_add(len).ok_or(io::ErrorKind::FileTooLarge)?;
        let room = self
            .free()
            .map_or(len, |free| self.file(number).map_or(0, |node| node.live.fitting(off, len, free / PAGE)));
        let time = self.tick();
        let fits = bytes.get(..usize::try_from(room).unwrap_or(usize::MAX)).unwrap_or(bytes);
        self.file_mut(number)?.write(time, off, fits);
        if room < len { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    /// The part of a write that a fault lets through.
    pub(super) fn write_part(
        &mut self,
        number: u64,
        bytes: &[u8],
        off: u64,
        effect: Effect,
    ) -> io::Result<()> {
        let half = bytes.len() as u64 / 2;
        let end = match effect {
            Effect::Nothing => return Ok(()),
            // Down to the boundary of a sector on the disk, as sectors are written whole.
            Effect::Part => ((off + half) / SECTOR * SECTOR).saturating_sub(off),
            Effect::Whole => bytes.len() as u64,
        };
        let part = bytes.get(..usize::try_from(end).unwrap_or(0)).unwrap_or_default();
        self.write(number, part, off)
    }

    pub(super) fn set_len(&mut self, number: u64, len: u64) -> io::Result<()> {
        self.check_changeable()?;
        let time = self.tick();
        self.file_mut(number)?.set_len(time, len);
        Ok(())
    }

    pub(super) fn reserve(&mut self, number: u64, off: u64, len: u64) -> io::Result<()> {
        self.check_changeable()?;
        off.checked_add(len).ok_or(io::ErrorKind::FileTooLarge)?;
        self.charge(self.file(number)?.live.missing(off, len) * PAGE)?;
        let time = self.tick();
        self.file_mut(number)?.reserve(time, off, len);
        Ok(())
    }

    /// Puts a file of these bytes there behind everybody's back, all durable.
    pub(super) fn install(&mut self, name: &str, bytes: &[u8]) {
        let mut dir = super::names::parent(name);
        while self.names.get(dir).is_none() {
            self.names.damage(dir, Some(Entry::Dir));
            dir = super::names::parent(dir);
        }
        self.install_node(name, Node::of_bytes(bytes));
    }

    pub(super) fn install_node(&mut self, name: &str, node: Node) {
        let number = self.add_file(node);
        self.names.damage(name, Some(Entry::File(number)));
        self.forget_unreachable();
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.names.damage(name, None);
        self.forget_unreachable();
    }

    fn add_file(&mut self, node: Node) -> u64 {
        let number = self.next_file;
        self.next_file += 1;
        self.files.insert(number, Arc::new(node));
        number
    }

    /// The files that no name leads to, open ones aside, are gone.
    pub(super) fn forget_unreachable(&mut self) {
        let reachable = self.names.reachable();
        let opens = &self.opens;
        self.files.retain(|number, _| reachable.contains(number) || opens.contains_key(number));
    }

    pub(super) fn check_changeable(&self) -> io::Result<()> {
        if self.read_only { Err(io::ErrorKind::ReadOnlyFilesystem.into()) } else { Ok(()) }
    }

    fn check_parent(&self, name: &str) -> io::Result<()> {
        if self.names.parent_exists(name) { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn charge(&self, bytes: u64) -> io::Result<()> {
        match self.free() {
            Some(free) if free < bytes => Err(io::ErrorKind::StorageFull.into()),
            _ => Ok(()),
        }
    }

    fn used(&self) -> u64 {
        // What only a power cut could bring back takes no space: the kernel frees it once the change is durable.
        let live = self.names.live.values().filter_map(|entry| match entry {
            Entry::File(number) => Some(*number),
            Entry::Dir => None,
        });
        let mut counted: Vec<u64> = live.chain(self.opens.keys().copied()).collect();
        counted.sort_unstable();
        counted.dedup();
        let pages: u64 = counted.iter().filter_map(|n| self.files.get(n)).map(|node| node.live.count()).sum();
        pages * PAGE + self.names.live.len() as u64 * NAME_BYTES
    }

    fn free(&self) -> Option<u64> {
        self.capacity.map(|capacity| capacity.saturating_sub(self.used()))
    }

    pub(super) fn free_space(&self) -> u64 {
        self.free().unwrap_or(UNLIMITED)
    }

    pub(super) fn set_free(&mut self, free: Option<u64>) {
        self.capacity = free.map(|free| self.used() + free);
    }

    pub(super) fn evict_clean(&mut self) {
        self.files.values_mut().map(Arc::make_mut).for_each(Node::evict_clean);
    }

    /// The same disk, with no handles and nothing planned.
    pub(super) fn copy(&self) -> Self {
        let mut copy = Self {
            time: self.time,
            next_file: self.next_file,
            next_owner: self.next_owner,
            next_process: self.next_process,
            names: self.names.clone(),
            files: self.files.clone(),
            held: self.held.clone(),
            capacity: self.capacity,
            charge_renames: self.charge_renames,
            lock_follows_name: self.lock_follows_name,
            read_only: self.read_only,
            fs_kind: self.fs_kind.clone(),
            planned: Planned::new(FaultPlan::none(), self.planned.struck.clone()),
            traced: self.traced,
            ..Self::new()
        };
        copy.forget_unreachable();
        copy
    }

    /// The same disk with nothing that a power cut could change.
    pub(super) fn settled(&self) -> Self {
        let mut copy = self.copy();
        copy.names.settle();
        copy.forget_unreachable();
        for node in copy.files.values_mut() {
            *node = Arc::new(node.all_durable());
        }
        copy
    }

    /// What a power cut leaves.
    pub(super) fn after(&self, seed: u64) -> Self {
        let files = self.files.values().filter_map(|node| node.oldest_pending());
        let oldest = files.chain(self.names.oldest_pending()).min().unwrap_or(self.time);
        let cut = Cut::new(seed, oldest.saturating_sub(1), self.time);
        let mut left = self.copy();
        left.held = None;
        left.names = self.names.after(&cut);
        left.forget_unreachable();
        for (number, node) in &mut left.files {
            *node = Arc::new(node.after(*number, &cut));
        }
        left
    }
}
