//! The simulated directories: the names that calls see, those that are durable, and the changes in between.
//!
//! A change of names is durable after a sync of its directory and not before, whatever was synced of the file. A rename
//! within a directory happens wholly or not at all; one between two directories is two changes, each with its own.

use std::collections::{BTreeMap, BTreeSet};

use super::cut::Cut;

/// What a power cut's choices about names are made for, where those about a file have its number.
const NAMES: u64 = u64::MAX;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Dir,
    File(u64),
}

#[derive(Debug, Clone)]
enum Change {
    Link { name: String, entry: Entry },
    Unlink { name: String, entry: Entry },
    Rename { from: String, to: String, entry: Entry },
}

#[derive(Debug, Clone)]
pub(super) struct Names {
    pub(super) live: BTreeMap<String, Entry>,
    durable: BTreeMap<String, Entry>,
    pending: Vec<(u64, Change)>,
}

impl Names {
    /// The root alone.
    pub(super) fn new() -> Self {
        let root = BTreeMap::from([(String::new(), Entry::Dir)]);
        Self { live: root.clone(), durable: root, pending: Vec::new() }
    }

    pub(super) fn get(&self, name: &str) -> Option<Entry> {
        self.live.get(name).copied()
    }

    pub(super) fn parent_exists(&self, name: &str) -> bool {
        !name.is_empty() && self.get(parent(name)) == Some(Entry::Dir)
    }

    pub(super) fn link(&mut self, time: u64, name: &str, entry: Entry) {
        self.live.insert(name.to_owned(), entry);
        self.pending.push((time, Change::Link { name: name.to_owned(), entry }));
    }

    pub(super) fn unlink(&mut self, time: u64, name: &str) {
        if let Some(entry) = self.live.remove(name) {
            self.pending.push((time, Change::Unlink { name: name.to_owned(), entry }));
        }
    }

    pub(super) fn rename(&mut self, time: u64, from: &str, to: &str) {
        let Some(entry) = self.live.remove(from) else { return };
        self.live.insert(to.to_owned(), entry);
        let (from, to) = (from.to_owned(), to.to_owned());
        self.pending.push((time, Change::Rename { from, to, entry }));
    }

    /// The names in `dir`.
    pub(super) fn list(&self, dir: &str) -> Vec<String> {
        let inside = self.live.keys().filter(|name| !name.is_empty() && parent(name) == dir);
        inside.map(|name| base(name).to_owned()).collect()
    }

    /// A sync of `dir` that began at `time` has succeeded.
    pub(super) fn synced(&mut self, time: u64, dir: &str) {
        let durable = &mut self.durable;
        self.pending.retain_mut(|(at, change)| *at > time || !change.settle(durable, dir));
    }

    /// What a power cut leaves.
    pub(super) fn after(&self, cut: &Cut) -> Self {
        let mut left = self.durable.clone();
        for (index, (time, change)) in self.pending.iter().enumerate() {
            if cut.keeps(NAMES, index as u64, *time) {
                change.apply(&mut left);
            }
        }
        let mut whole = BTreeMap::new();
        for (name, entry) in left {
            // A directory's name sorts before the names in it.
            if name.is_empty() || whole.get(parent(&name)) == Some(&Entry::Dir) {
                whole.insert(name, entry);
            }
        }
        Self { live: whole.clone(), durable: whole, pending: Vec::new() }
    }

    /// A name appears or vanishes behind everybody's back.
    pub(super) fn damage(&mut self, name: &str, entry: Option<Entry>) {
        for names in [&mut self.live, &mut self.durable] {
            match entry {
                Some(entry) => names.insert(name.to_owned(), entry),
                None => names.remove(name),
            };
        }
        self.pending.retain_mut(|(_, change)| !change.forget(name));
    }

    /// The names that calls see become the durable ones.
    pub(super) fn settle(&mut self) {
        self.durable.clone_from(&self.live);
        self.pending.clear();
    }

    pub(super) fn durable(&self, name: &str) -> Option<Entry> {
        self.durable.get(name).copied()
    }

    /// The numbers of the files that some name leads to, or may lead to after a power cut.
    pub(super) fn reachable(&self) -> BTreeSet<u64> {
        let pending = self.pending.iter().map(|(_, change)| change.entry());
        let all = self.live.values().chain(self.durable.values()).copied().chain(pending);
        all.filter_map(|entry| if let Entry::File(number) = entry { Some(number) } else { None }).collect()
    }

    /// The time of the oldest change that is not durable.
    pub(super) fn oldest_pending(&self) -> Option<u64> {
        self.pending.iter().map(|(time, _)| *time).min()
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<String, Entry>) {
        match self {
            Self::Link { name, entry } => {
                names.insert(name.clone(), *entry);
            }
            Self::Unlink { name, entry } => remove(names, name, *entry),
            Self::Rename { from, to, entry } => {
                remove(names, from, *entry);
                names.insert(to.clone(), *entry);
            }
        }
    }

    /// Makes what belongs to `dir` durable; whether nothing is left of the change.
    fn settle(&mut self, durable: &mut BTreeMap<String, Entry>, dir: &str) -> bool {
        match self {
            Self::Link { name, .. } | Self::Unlink { name, .. } => {
                let here = parent(name) == dir;
                if here {
                    self.apply(durable);
                }
                here
            }
            Self::Rename { from, to, entry } => match (parent(from) == dir, parent(to) == dir) {
                (true, true) => {
                    self.apply(durable);
                    true
                }
                (true, false) => {
                    remove(durable, from, *entry);
                    *self = Self::Link { name: std::mem::take(to), entry: *entry };
                    false
                }
                (false, true) => {
                    durable.insert(to.clone(), *entry);
                    *self = Self::Unlink { name: std::mem::take(from), entry: *entry };
                    false
                }
                (false, false) => false,
            },
        }
    }

    fn entry(&self) -> Entry {
        match self {
            Self::Link { entry, .. } | Self::Unlink { entry, .. } | Self::Rename { entry, .. } => *entry,
        }
    }

    /// Leaves nothing to be done to the name `what`; whether nothing is left of the change.
    fn forget(&mut self, what: &str) -> bool {
        match self {
            Self::Link { name, .. } | Self::Unlink { name, .. } => name == what,
            Self::Rename { from, to, entry } => {
                if from == what {
                    *self = Self::Link { name: std::mem::take(to), entry: *entry };
                } else if to == what {
                    *self = Self::Unlink { name: std::mem::take(from), entry: *entry };
                }
                false
            }
        }
    }
}

/// Removes the name if it leads there: a change that was lost before this one may have left it to something else.
fn remove(names: &mut BTreeMap<String, Entry>, name: &str, entry: Entry) {
    if names.get(name) == Some(&entry) {
        names.remove(name);
    }
}

pub(super) fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(dir, _)| dir)
}

fn base(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, base)| base)
}
