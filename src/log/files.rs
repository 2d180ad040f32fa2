//! Open segment files: a bounded cache, so that a store with thousands of segments needs few descriptors.
//!
//! The active segment's file stays open. Everything else is closed again when more than the bound are open.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::disk::{Disk, DiskFile, OpenMode};
use crate::error::Result;
use crate::format::names;

#[derive(Debug)]
pub(crate) struct Files {
    disk: Arc<dyn Disk>,
    bound: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    clock: u64,
    read: HashMap<u32, (Arc<dyn DiskFile>, u64)>,
    written: HashMap<u32, Arc<dyn DiskFile>>,
    prepared: HashMap<u32, Arc<dyn DiskFile>>,
    control: Option<Arc<dyn DiskFile>>,
}

impl Files {
    pub(crate) fn new(disk: Arc<dyn Disk>, bound: usize) -> Self {
        Self { disk, bound: bound.max(2), open: Mutex::default() }
    }

    /// The file of a segment, to read from.
    pub(crate) fn readable(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.cached(number) {
            return Ok(file);
        }
        let file = self.disk.open(&names::segment(number), OpenMode::Read)?;
        let mut open = self.open.lock();
        open.clock = open.clock.wrapping_add(1);
        let clock = open.clock;
        open.read.insert(number, (Arc::clone(&file), clock));
        while open.read.len() > self.bound {
            let oldest = open.read.iter().min_by_key(|(_, (_, used))| *used).map(|(number, _)| *number);
            match oldest {
                Some(number) => drop(open.read.remove(&number)),
                None => break,
            }
        }
        Ok(file)
    }

    fn cached(&self, number: u32) -> Option<Arc<dyn DiskFile>> {
        let mut open = self.open.lock();
        if let Some(file) = open.written.get(&number) {
            return Some(Arc::clone(file));
        }
        open.clock = open.clock.wrapping_add(1);
        let clock = open.clock;
        let (file, used) = open.read.get_mut(&number)?;
        *used = clock;
        Some(Arc::clone(file))
    }

    /// The file of the segment that is being written.
    pub(crate) fn writable(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.lock().written.get(&number) {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&names::segment(number), OpenMode::ReadWrite)?;
        self.open.lock().written.insert(number, Arc::clone(&file));
        Ok(file)
    }

    /// The file that is being prepared to become segment `number`.
    pub(crate) fn prepared(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        if let Some(file) = self.open.lock().prepared.get(&number) {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(&names::prepared(number), OpenMode::ReadWrite)?;
        self.open.lock().prepared.insert(number, Arc::clone(&file));
        Ok(file)
    }

    /// The file of the active segment, or of one that is about to be: under whichever name it has at the moment.
    pub(crate) fn fillable(&self, number: u32) -> Result<Arc<dyn DiskFile>> {
        {
            let open = self.open.lock();
            if let Some(file) = open.written.get(&number).or_else(|| open.prepared.get(&number)) {
                return Ok(Arc::clone(file));
            }
        }
        self.writable(number)
    }

    pub(crate) fn add_prepared(&self, number: u32, file: Arc<dyn DiskFile>) {
        self.open.lock().prepared.insert(number, file);
    }

    /// A prepared file became a segment. The one before is read from now on.
    pub(crate) fn started(&self, number: u32, file: Arc<dyn DiskFile>) {
        let mut open = self.open.lock();
        open.prepared.remove(&number);
        open.written.insert(number, file);
    }

    /// The segment is not written any more.
    pub(crate) fn ended(&self, number: u32) {
        self.open.lock().written.remove(&number);
    }

    pub(crate) fn control(&self) -> Result<Arc<dyn DiskFile>> {
        if let Some(file) = &self.open.lock().control {
            return Ok(Arc::clone(file));
        }
        let file = self.disk.open(names::CONTROL, OpenMode::ReadWrite)?;
        self.open.lock().control = Some(Arc::clone(&file));
        Ok(file)
    }
}
