//! What the faults of a plan do to the medium: damage that no call reports.

use std::io;
use std::sync::Arc;

use crate::testing::random::Random;

use super::node::Node;
use super::pages::{PAGE, SECTOR};
use super::plan::FaultKind;
use super::state::State;

/// So many older versions of files are kept for [`FaultKind::Swapped`].
const VERSIONS_KEPT: usize = 4;

impl State {
    /// Before a call: what befalls the medium by itself.
    pub(super) fn befall(&mut self) {
        for kind in [K::Eviction, K::BitRot, K::ZeroedPage, K::Vanished, K::Swapped, K::StaleForGood] {
            let Some(draw) = self.planned.chance(kind) else { continue };
            self.harm(kind, draw);
        }
    }

    /// Does what `kind` does to the medium by itself, at a place that `draw` gives; whether there was one.
    pub(super) fn harm(&mut self, kind: FaultKind, draw: u64) -> bool {
        let mut random = Random::new(draw);
        let done = match kind {
            K::Eviction => {
                self.evict_clean();
                Some(())
            }
            K::BitRot => self.rot(&mut random),
            K::ZeroedPage => self.zero_a_page(&mut random),
            K::Vanished => self.vanish(&mut random),
            K::Swapped => self.swap(&mut random),
            K::StaleForGood => self.fall_back(&mut random),
            K::BadSector => self.spoil(&mut random),
            _ => None,
        };
        if done.is_some() {
            self.planned.hit(kind);
        }
        done.is_some()
    }

    fn spoil(&mut self, random: &mut Random) -> Option<()> {
        let (_, number) = self.some_file(random)?;
        let place = self.some_place(number, random)? / SECTOR * SECTOR;
        self.file_mut(number).ok()?.bad.push(place..place + SECTOR);
        Some(())
    }

    /// Some file that has bytes; segments are the likeliest.
    fn some_file(&self, random: &mut Random) -> Option<(String, u64)> {
        let files: Vec<(String, u64)> = self.filled_files().collect();
        let segments: Vec<&(String, u64)> = files.iter().filter(|(name, _)| name.ends_with(".seg")).collect();
        if random.chance(2, 3)
            && let Some(segment) = random.pick(&segments)
        {
            return Some((*segment).clone());
        }
        random.pick(&files).cloned()
    }

    fn filled_files(&self) -> impl Iterator<Item = (String, u64)> + '_ {
        let all = self.names.live.keys().filter(|name| *name != "LOCK");
        all.filter_map(|name| {
            let number = self.find(name).ok()?;
            (self.file(number).ok()?.len > 0).then(|| (name.clone(), number))
        })
    }

    /// A place in the file, half of the time one before its last byte that is not zero.
    fn some_place(&self, number: u64, random: &mut Random) -> Option<u64> {
        let node = self.file(number).ok()?;
        let filled = node.live_bytes().iter().rposition(|byte| *byte != 0).map_or(0, |at| at as u64 + 1);
        let near = filled > 0 && random.chance(3, 4);
        Some(random.below(if near { filled } else { node.len }))
    }

    fn rot(&mut self, random: &mut Random) -> Option<()> {
        let (_, number) = self.some_file(random)?;
        let (place, bit) = (self.some_place(number, random)?, random.below(8));
        let flip = |_, byte: u8| byte ^ (1u8 << bit);
        self.file_mut(number).ok()?.damage(place, 1, flip);
        Some(())
    }

    fn zero_a_page(&mut self, random: &mut Random) -> Option<()> {
        let (_, number) = self.some_file(random)?;
        let page = self.some_place(number, random)? / PAGE * PAGE;
        self.file_mut(number).ok()?.damage(page, PAGE, |_, _| 0);
        Some(())
    }

    fn vanish(&mut self, random: &mut Random) -> Option<()> {
        let (name, _) = self.some_file(random)?;
        self.remove(&name);
        Some(())
    }

    fn swap(&mut self, random: &mut Random) -> Option<()> {
        let (name, older) = random.pick(&self.kept).cloned()?;
        self.find(&name).ok()?;
        self.install_node(&name, older.all_durable());
        Some(())
    }

    /// After a sync: an older version of the file is kept now and then, if the plan may want it.
    pub(super) fn keep_version(&mut self, number: u64) {
        if !self.planned.has(K::Swapped) {
            return;
        }
        let names = self.names.live.keys().filter(|name| self.find(name).ok() == Some(number));
        let Some(name) = names.map(Clone::clone).next().filter(|name| name != "LOCK") else { return };
        let Ok(node) = self.file(number) else { return };
        let version = (name, Arc::new(node.all_durable()));
        if self.kept.len() == VERSIONS_KEPT {
            let place = usize::try_from(self.now()).unwrap_or(0) % VERSIONS_KEPT;
            self.kept.remove(place);
        }
        self.kept.push(version);
    }

    /// Whether nodes have to remember what their sectors were.
    pub(super) fn remembers(&self) -> bool {
        self.planned.has(K::StaleRead) || self.planned.has(K::StaleForGood)
    }

    fn fall_back(&mut self, random: &mut Random) -> Option<()> {
        let with_past = |number: &u64| self.file(*number).is_ok_and(Node::has_past);
        let files: Vec<u64> = self.filled_files().map(|(_, number)| number).filter(with_past).collect();
        let number = *random.pick(&files)?;
        self.file_mut(number).ok()?.fall_back(random.next_u64())
    }

    /// A write of `bytes` as the plan lets it go: how many of them a call takes.
    pub(super) fn write_planned(&mut self, number: u64, bytes: &[u8], off: u64) -> io::Result<usize> {
        if self.planned.chance(K::Interrupted).is_some() {
            self.planned.hit(K::Interrupted);
            return Err(io::ErrorKind::Interrupted.into());
        }
        let taken = self.short(bytes, off);
        if let Some(draw) = self.planned.chance(K::Misdirected) {
            let mut random = Random::new(draw);
            if self.misdirect(taken, &mut random).is_some() {
                self.planned.hit(K::Misdirected);
                self.write_lost(number, taken, off)?;
                return Ok(taken.len());
            }
        }
        if self.planned.chance(K::LostWrite).is_some() {
            self.planned.hit(K::LostWrite);
            self.write_lost(number, taken, off)?;
            return Ok(taken.len());
        }
        self.write(number, taken, off)?;
        Ok(taken.len())
    }

    /// The part of a write that a call takes. It ends where a sector does, as kernels end theirs at a block: bytes in the
    /// middle of a sector that reached the medium without the rest would be a sector that is not written whole.
    fn short<'a>(&mut self, bytes: &'a [u8], off: u64) -> &'a [u8] {
        let (first, last) = (off / SECTOR + 1, (off + bytes.len() as u64).div_ceil(SECTOR));
        if last <= first {
            return bytes;
        }
        let Some(draw) = self.planned.chance(K::ShortWrite) else { return bytes };
        self.planned.hit(K::ShortWrite);
        let end = (first + Random::new(draw).below(last - first)) * SECTOR - off;
        bytes.get(..usize::try_from(end).unwrap_or(usize::MAX)).unwrap_or(bytes)
    }

    /// The first sectors of `bytes` land somewhere else.
    fn misdirect(&mut self, bytes: &[u8], random: &mut Random) -> Option<()> {
        let (_, number) = self.some_file(random)?;
        let at = self.some_place(number, random)? / SECTOR * SECTOR;
        let whole = bytes.len().min(4096).next_multiple_of(512);
        let byte_at = |place: u64| usize::try_from(place - at).ok().and_then(|index| bytes.get(index));
        self.file_mut(number)
            .ok()?
            .damage(at, whole as u64, |place, byte| byte_at(place).copied().unwrap_or(byte));
        Some(())
    }

    /// Seen by reads for now; no sync and no power cut finds it on the medium.
    fn write_lost(&mut self, number: u64, bytes: &[u8], off: u64) -> io::Result<()> {
        self.check_changeable()?;
        let time = self.tick();
        self.file_mut(number)?.write_lost(time, off, bytes);
        Ok(())
    }

    /// What a read of a plan with faults sees instead of `buf`, which holds the bytes from `off` on.
    pub(super) fn read_planned(&mut self, number: u64, buf: &mut [u8], off: u64) -> io::Result<()> {
        if let Some(draw) = self.planned.chance(K::BadSector).filter(|_| !buf.is_empty()) {
            self.planned.hit(K::BadSector);
            let place = (off + Random::new(draw).below(buf.len() as u64)) / SECTOR * SECTOR;
            self.file_mut(number)?.bad.push(place..place + SECTOR);
            return Err(io::Error::other("input/output error (simulated)"));
        }
        if let Some(draw) = self.planned.chance(K::StaleRead)
            && self.file(number)?.show_past(off, buf, draw).is_some()
        {
            self.planned.hit(K::StaleRead);
        }
        Ok(())
    }

    /// Whether the call at hand is interrupted before it does anything.
    pub(super) fn interrupted(&mut self) -> io::Result<()> {
        if self.planned.chance(K::Interrupted).is_none() {
            return Ok(());
        }
        self.planned.hit(K::Interrupted);
        Err(io::ErrorKind::Interrupted.into())
    }
}

use FaultKind as K;
