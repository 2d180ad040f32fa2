//! One simulated file: what reads see, what is surely durable, and everything in between.
//!
//! A write gives each sector it touches a new version. A sync makes the newest versions durable; a failed sync marks
//! them clean, so that no later sync writes them either, as kernels do. A power cut leaves, for each sector by
//! itself, the durable bytes or any version since (and the same for the length): disks reorder.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use super::cut::Cut;
use super::pages::{PAGE, Pages, SECTOR, Sector, shared_sector};

/// A sector that is written again and again without a sync keeps this many versions: the oldest and the newest.
const VERSIONS: usize = 6;

#[derive(Debug, Clone)]
struct Version {
    time: u64,
    bytes: Arc<Sector>,
    /// A failed sync has dropped it: reads see it, no later sync makes it durable.
    clean: bool,
    /// The medium never got it: no power cut leaves it either.
    lost: bool,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) live: Pages,
    pub(super) len: u64,
    durable: Pages,
    durable_len: u64,
    /// By sector number: the versions since the last sync that covered it, oldest first.
    dirty: BTreeMap<u64, Vec<Version>>,
    /// The lengths since the last sync, with their times, oldest first.
    lens: Vec<(u64, u64)>,
    /// Space was reserved since the last sync.
    reserved: bool,
    /// Syncs under way: versions that they will make durable must not be forgotten.
    pub(super) syncing: u32,
    /// What sectors were on the medium before the last sync, where that is remembered.
    past: BTreeMap<u64, Arc<Sector>>,
    /// Byte ranges that cannot be read.
    pub(super) bad: Vec<Range<u64>>,
}

impl Node {
    pub(super) fn read(&self, off: u64, buf: &mut [u8]) -> usize {
        let there = self.len.saturating_sub(off);
        let len = usize::try_from(there).unwrap_or(usize::MAX).min(buf.len());
        if let Some(buf) = buf.get_mut(..len) {
            self.live.read(off, buf);
        }
        len
    }

    pub(super) fn is_bad(&self, off: u64, len: u64) -> bool {
        self.bad.iter().any(|range| range.start < off.saturating_add(len) && off < range.end)
    }

    pub(super) fn write(&mut self, time: u64, off: u64, bytes: &[u8]) {
        if bytes.is_empty() {
            return;
        }
        let end = off + bytes.len() as u64;
        self.live.write(off, bytes);
        let (mut sector, behind) = (off / SECTOR, end.div_ceil(SECTOR));
        while sector < behind {
            if sector.is_multiple_of(PAGE / SECTOR) && self.is_zero_before_and_after(sector) {
                // Zeros over zeros: whatever a power cut keeps is the same.
                sector += PAGE / SECTOR;
                continue;
            }
            self.push_version(time, sector);
            sector += 1;
        }
        if end > self.len {
            self.len = end;
            self.lens.push((time, end));
        }
    }

    /// As [`write`](Self::write), only that the medium never gets it.
    pub(super) fn write_lost(&mut self, time: u64, off: u64, bytes: &[u8]) {
        self.write(time, off, bytes);
        let end = off + bytes.len() as u64;
        for (_, versions) in self.dirty.range_mut(off / SECTOR..end.div_ceil(SECTOR)) {
            for version in versions.iter_mut().filter(|version| version.time == time) {
                (version.clean, version.lost) = (true, true);
            }
        }
    }

    pub(super) fn set_len(&mut self, time: u64, len: u64) {
        if len < self.len {
            self.live.cut(len);
            let behind: Vec<u64> = self.dirty.range(len / SECTOR..).map(|(sector, _)| *sector).collect();
            for sector in behind {
                self.push_version(time, sector);
            }
        }
        self.len = len;
        self.lens.push((time, len));
    }

    pub(super) fn reserve(&mut self, time: u64, off: u64, len: u64) {
        self.live.reserve(off, len);
        self.reserved = true;
        if off + len > self.len {
            self.len = off + len;
            self.lens.push((time, self.len));
        }
    }

    /// Whether the page that begins with `sector` is zero for reads and on the medium, and was nothing else in between.
    fn is_zero_before_and_after(&self, sector: u64) -> bool {
        let page = sector / (PAGE / SECTOR);
        let none_between = self.dirty.range(sector..sector + PAGE / SECTOR).next().is_none();
        none_between && self.live.is_zero(page) && self.durable.is_zero(page)
    }

    fn push_version(&mut self, time: u64, sector: u64) {
        let bytes = shared_sector(self.live.sector(sector));
        let versions = self.dirty.entry(sector).or_default();
        versions.push(Version { time, bytes, clean: false, lost: false });
        if versions.len() > VERSIONS && self.syncing == 0 {
            versions.remove(1);
        }
    }

    /// A sync that began at `time` has succeeded; `remember` what its sectors were before.
    pub(super) fn synced(&mut self, time: u64, remember: bool) {
        let shortest = self.lens.iter().filter(|(at, _)| *at <= time).map(|(_, len)| *len).min();
        if let Some(shortest) = shortest.filter(|len| *len < self.durable_len) {
            self.durable.cut(shortest);
        }
        let (durable, past) = (&mut self.durable, &mut self.past);
        self.dirty.retain(|sector, versions| {
            let covered = versions.iter().rposition(|v| v.time <= time && !v.clean);
            if let Some(covered) = covered {
                if let Some(version) = versions.get(covered) {
                    let before = remember.then(|| durable.sector(*sector));
                    if let Some(before) = before.filter(|before| *before != *version.bytes) {
                        past.insert(*sector, shared_sector(before));
                    }
                    durable.write(sector * SECTOR, version.bytes.as_slice());
                }
                versions.drain(..=covered);
            }
            !versions.is_empty()
        });
        if let Some((_, len)) = self.lens.iter().rfind(|(at, _)| *at <= time) {
            self.durable_len = *len;
        }
        self.lens.retain(|(at, _)| *at > time);
        if std::mem::take(&mut self.reserved) {
            self.durable.reserve_like(&self.live);
        }
        // A sync writes whole sectors; what a shorter file leaves of the last one is not part of it.
        self.durable.cut(self.durable_len);
    }

    /// A sync has failed, and the kernel calls what it did not write clean. The length is the journal's business and
    /// may still become durable.
    pub(super) fn sync_dropped(&mut self) {
        for version in self.dirty.values_mut().flatten() {
            version.clean = true;
        }
    }

    /// The memory of pages that are called clean is given to something else: reads see what is on the disk.
    pub(super) fn evict_clean(&mut self) {
        let (live, durable) = (&mut self.live, &self.durable);
        self.dirty.retain(|sector, versions| {
            let lost = versions.last().is_some_and(|newest| newest.clean);
            if lost {
                live.write(sector * SECTOR, &durable.sector(*sector));
            }
            !lost
        });
        self.live.cut(self.len);
    }

    pub(super) fn has_past(&self) -> bool {
        !self.past.is_empty()
    }

    /// Some sector becomes what it was before the last sync that changed it.
    pub(super) fn fall_back(&mut self, draw: u64) -> Option<()> {
        let place = usize::try_from(draw % (self.past.len() as u64).max(1)).ok()?;
        let (sector, before) =
            self.past.iter().nth(place).map(|(sector, before)| (*sector, Arc::clone(before)))?;
        let start = sector * SECTOR;
        let byte_at = |at: u64| usize::try_from(at - start).ok().and_then(|index| before.get(index)).copied();
        self.damage(start, SECTOR, |at, byte| byte_at(at).unwrap_or(byte));
        Some(())
    }

    /// Puts an older version of some sector into `buf`, which was read from `off` on.
    pub(super) fn show_past(&self, off: u64, buf: &mut [u8], draw: u64) -> Option<()> {
        let end = off + buf.len() as u64;
        let there: Vec<_> = self.past.range(off / SECTOR..end.div_ceil(SECTOR)).collect();
        let (sector, before) = there.get(usize::try_from(draw % (there.len() as u64).max(1)).ok()?)?;
        for (at, byte) in (*sector * SECTOR..).zip(before.iter()) {
            let place = at.checked_sub(off).and_then(|place| usize::try_from(place).ok());
            if let Some(to) = place.and_then(|place| buf.get_mut(place)) {
                *to = *byte;
            }
        }
        Some(())
    }

    /// The time of the oldest change that is not durable.
    pub(super) fn oldest_pending(&self) -> Option<u64> {
        let versions = self.dirty.values().flatten().map(|version| version.time);
        versions.chain(self.lens.iter().map(|(time, _)| *time)).min()
    }

    /// What a power cut leaves.
    pub(super) fn after(&self, number: u64, cut: &Cut) -> Self {
        let kept = self.lens.iter().rposition(|(time, _)| cut.keeps(number, u64::MAX, *time));
        let (lens, _) = self.lens.split_at(kept.map_or(0, |kept| kept + 1));
        let (kept_at, len) = lens.last().copied().unwrap_or((0, self.durable_len));
        let mut pages = self.durable.clone();
        if let Some(shortest) = lens.iter().map(|(_, len)| *len).min().filter(|len| *len < self.durable_len) {
            pages.cut(shortest);
        }
        let shrinks = self.shrinks();
        for (sector, versions) in &self.dirty {
            let (start, end) = (sector * SECTOR, (sector + 1) * SECTOR);
            // A cut that became durable took what was behind it along; without it, what was written there later has
            // no place in the file.
            let took = shrinks.iter().filter(|(time, len)| *time <= kept_at && *len < end);
            let since = took.map(|(time, _)| *time).max().unwrap_or(0);
            let lost = shrinks.iter().filter(|(time, len)| *time > kept_at && *len <= start);
            let until = lost.map(|(time, _)| *time).min().unwrap_or(u64::MAX);
            let mut newest = versions.iter().rev().filter(|v| (since..until).contains(&v.time));
            if let Some(kept) = newest.find(|v| !v.lost && cut.keeps(number, *sector, v.time)) {
                pages.write(start, kept.bytes.as_slice());
            }
        }
        pages.cut(len);
        Self::settled(pages, len, self.bad.clone())
    }

    /// The lengths since the last sync that made the file shorter, with their times.
    fn shrinks(&self) -> Vec<(u64, u64)> {
        let mut before = self.durable_len;
        let mut shrinks = Vec::new();
        for (time, len) in &self.lens {
            if *len < before {
                shrinks.push((*time, *len));
            }
            before = *len;
        }
        shrinks
    }

    fn settled(pages: Pages, len: u64, bad: Vec<Range<u64>>) -> Self {
        Self { live: pages.clone(), len, durable: pages, durable_len: len, bad, ..Self::default() }
    }

    /// The file as reads see it, all durable.
    pub(super) fn all_durable(&self) -> Self {
        Self::settled(self.live.clone(), self.len, self.bad.clone())
    }

    /// A file of these bytes, all durable.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        let mut pages = Pages::default();
        pages.write(0, bytes);
        Self::settled(pages, bytes.len() as u64, Vec::new())
    }

    /// What is durable whatever happens.
    pub(super) fn durable_bytes(&self) -> Vec<u8> {
        bytes_of(&self.durable, self.durable_len)
    }

    pub(super) fn live_bytes(&self) -> Vec<u8> {
        bytes_of(&self.live, self.len)
    }

    /// Changes bytes behind everybody's back: what is live, durable and in between alike.
    pub(super) fn damage(&mut self, off: u64, len: u64, change: impl Fn(u64, u8) -> u8) {
        let end = (off + len).min(self.len.max(self.durable_len));
        for at in off..end {
            for pages in [&mut self.live, &mut self.durable] {
                let mut byte = [0];
                pages.read(at, &mut byte);
                pages.write(at, &byte.map(|byte| change(at, byte)));
            }
            for version in self.dirty.get_mut(&(at / SECTOR)).into_iter().flatten() {
                let inside = usize::try_from(at % SECTOR).unwrap_or(0);
                if let Some(byte) = Arc::make_mut(&mut version.bytes).get_mut(inside) {
                    *byte = change(at, *byte);
                }
            }
        }
    }

    /// Cuts the file behind everybody's back.
    pub(super) fn damage_len(&mut self, len: u64) {
        self.live.cut(len);
        *self = Self::settled(std::mem::take(&mut self.live), len, std::mem::take(&mut self.bad));
    }
}

fn bytes_of(pages: &Pages, len: u64) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
    pages.read(0, &mut bytes);
    bytes
}
