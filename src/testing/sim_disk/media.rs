//! Damage done behind the engine's back, and looks at the disk that are no calls of it.
//!
//! Nothing here is numbered, traced or struck by faults. Damage is live and durable at once. A path without a file is
//! left alone and answered with `false` or `None`.

use std::ops::Range;

use super::SimDisk;
use super::node::Node;
use super::plan::FaultKind;

impl SimDisk {
    fn damage_file(&self, path: &str, act: impl FnOnce(&mut Node)) -> bool {
        let mut state = self.state();
        let found = state.find(path);
        let node = found.and_then(|number| state.file_mut(number));
        node.map(act).is_ok()
    }

    /// Turns over bit `bit` (0 to 7) of the byte at `off`.
    pub fn flip(&self, path: &str, off: u64, bit: u32) -> bool {
        self.damage_file(path, |node| node.damage(off, 1, |_, byte| byte ^ 1u8.wrapping_shl(bit)))
    }

    /// Sets a range of bytes to zero; what is behind the end of the file is left alone.
    pub fn zero(&self, path: &str, range: Range<u64>) -> bool {
        let len = range.end.saturating_sub(range.start);
        self.damage_file(path, |node| node.damage(range.start, len, |_, _| 0))
    }

    /// Puts other bytes there; what is behind the end of the file is left alone.
    pub fn overwrite(&self, path: &str, off: u64, bytes: &[u8]) -> bool {
        let byte_at = |at: u64| usize::try_from(at - off).ok().and_then(|index| bytes.get(index)).copied();
        self.damage_file(path, |node| {
            node.damage(off, bytes.len() as u64, |at, byte| byte_at(at).unwrap_or(byte));
        })
    }

    /// Makes the file this long: cut, or extended with zeros.
    pub fn truncate(&self, path: &str, len: u64) -> bool {
        self.damage_file(path, |node| node.damage_len(len))
    }

    /// Takes the file away.
    pub fn remove(&self, path: &str) -> bool {
        let mut state = self.state();
        let there = state.find(path).is_ok();
        if there {
            state.remove(path);
        }
        there
    }

    /// Puts a file of these bytes there, in place of what is there, with the directories above it.
    pub fn install(&self, path: &str, bytes: &[u8]) {
        self.state().install(path, bytes);
    }

    /// Lets reads that touch the range fail, as on a sector that went bad. It stays so, also after a power cut.
    pub fn fail_reads(&self, path: &str, range: Range<u64>) -> bool {
        self.damage_file(path, |node| node.bad.push(range))
    }

    /// Makes all of the file readable again.
    pub fn heal_reads(&self, path: &str) -> bool {
        self.damage_file(path, |node| node.bad.clear())
    }

    /// Does to the medium what a planned fault of that kind would, at a place that `draw` gives. `false` for kinds that
    /// are about calls, and where there is nothing to be harmed.
    pub fn harm(&self, kind: FaultKind, draw: u64) -> bool {
        self.state().harm(kind, draw)
    }

    /// The page cache forgets what a failed sync has called clean: reads see the disk's older bytes from now on.
    pub fn evict_clean(&self) {
        self.state().evict_clean();
    }

    /// What reads of the file would see.
    #[must_use]
    pub fn contents(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.state();
        let number = state.find(path).ok()?;
        state.file(number).ok().map(Node::live_bytes)
    }

    /// What would be left of the file by a power cut that loses everything it may.
    #[must_use]
    pub fn durable_contents(&self, path: &str) -> Option<Vec<u8>> {
        let state = self.state();
        match state.names.durable(path)? {
            super::names::Entry::File(number) => state.file(number).ok().map(Node::durable_bytes),
            super::names::Entry::Dir => None,
        }
    }

    /// The paths of all files, in byte order.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        let state = self.state();
        state.names.live.keys().filter(|name| state.find(name).is_ok()).cloned().collect()
    }
}
