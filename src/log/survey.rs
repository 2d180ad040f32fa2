//! What lies in a store's directory before anything is believed or changed: the input of the recovery plan.

use std::collections::BTreeSet;

use crate::disk::{Disk, OpenMode};
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Control, ControlSlot, LiveSet, SECTOR, SEGMENT_HEADER_LEN, SegmentHeader, StoreId, names,
};
use crate::mutation::{self, Mutation};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Survey {
    pub control: Option<ControlSlot>,
    pub live: Option<LiveSet>,
    pub has_control: bool,
    pub has_live: bool,
    /// Segment files, ascending.
    pub segments: Vec<u32>,
    pub prepared: Vec<u32>,
    pub indexes: BTreeSet<u32>,
    /// Files that a writer left under the name it writes an index file under.
    pub index_temps: Vec<u32>,
    /// Highest epoch that a leftover or a quarantined piece names.
    pub epoch: u64,
    pub notes: Vec<String>,
    pub control_damaged: bool,
    /// Whose store it is: by the newest segment header that can be read, else by CONTROL, else by LIVE.
    owner: Option<StoreId>,
    /// Something that only a store with a segment ever has: a segment of whatever standing, an index, a run, a
    /// quarantined piece.
    pub has_remains: bool,
}

impl Survey {
    /// Looks at everything but the segments' contents.
    ///
    /// # Errors
    /// A file cannot be read, or is of a version that this build does not read (named in the error; left untouched).
    pub(crate) fn take(disk: &dyn Disk) -> Result<Self> {
        let mut survey = Self::default();
        survey.read_control(disk)?;
        survey.read_live(disk)?;
        survey.list_segments(disk)?;
        survey.drop_foreign(disk);
        if let (Some(control), Some(live)) = (&survey.control, &survey.live)
            && live.version < control.live_version
            && !mutation::is_on(Mutation::OldLiveBelieved)
        {
            let (found, needed) = (live.version, control.live_version);
            survey.notes.push(format!("{}: version {found}, yet {needed} was there; rebuilt", names::LIVE));
            survey.live = None;
        }
        for number in survey.prepared.clone() {
            let epoch = prepared_epoch(disk, number).unwrap_or(0);
            survey.epoch = survey.epoch.max(epoch);
        }
        for name in list(disk, names::QUARANTINE)? {
            if let Some((_, _, epoch)) = names::parse_quarantine(&name) {
                survey.epoch = survey.epoch.max(epoch);
                survey.has_remains = true;
            }
        }
        let runs = list(disk, names::DIRECTORY)?;
        survey.has_remains |= runs.iter().any(|name| names::parse_run(name).is_some());
        survey.has_remains |= !survey.segments.is_empty() || !survey.indexes.is_empty();
        if let Some(live) = &survey.live {
            let highest = survey.segments.last().copied().unwrap_or(0);
            survey
                .segments
                .retain(|number| live.member(*number, highest) == Some(crate::format::Member::Live));
        }
        Ok(survey)
    }

    fn list_segments(&mut self, disk: &dyn Disk) -> Result<()> {
        for name in list(disk, names::SEGMENTS)? {
            match names::parse_segments_entry(&name) {
                names::SegmentsEntry::Segment(number) => self.segments.push(number),
                names::SegmentsEntry::Prepared(number) => self.prepared.push(number),
                names::SegmentsEntry::Index(number) => drop(self.indexes.insert(number)),
                names::SegmentsEntry::IndexTemp(number) => self.index_temps.push(number),
                names::SegmentsEntry::Other => {
                    self.notes.push(format!("segments/{name} is no file of a store; left alone"))
                }
            }
        }
        self.segments.sort_unstable();
        Ok(())
    }

    /// The segments tell whose store it is: CONTROL or LIVE of another one says nothing about this one (E3).
    fn drop_foreign(&mut self, disk: &dyn Disk) {
        let owner = self.segments.iter().rev().find_map(|number| {
            let header = header_of(disk, &names::segment(*number))?;
            Some(header.store)
        });
        let Some(owner) = owner else {
            let told = || self.live.as_ref().map(|live| live.store);
            self.owner = self.control.map(|slot| slot.store).or_else(told);
            return;
        };
        if self.control.is_some_and(|slot| slot.store != owner) {
            self.control = None;
            self.control_damaged = true;
            self.notes.push(format!("{} belongs to another store; rebuilt", names::CONTROL));
        }
        if self.live.as_ref().is_some_and(|live| live.store != owner) {
            self.live = None;
            self.notes.push(format!("{} belongs to another store", names::LIVE));
        }
        self.owner = Some(owner);
    }

    fn read_control(&mut self, disk: &dyn Disk) -> Result<()> {
        let Some(bytes) = read_whole(disk, names::CONTROL)? else { return Ok(()) };
        self.has_control = true;
        let control = Control::decode(&bytes);
        if let Some(fault) = control.unsupported() {
            return Err(version(names::CONTROL, &fault.to_string()));
        }
        for (offset, fault) in control.damaged() {
            self.control_damaged = true;
            self.notes.push(format!("{} at byte {offset}: {fault}; rebuilt", names::CONTROL));
        }
        self.control = control.newest();
        Ok(())
    }

    fn read_live(&mut self, disk: &dyn Disk) -> Result<()> {
        let Some(bytes) = read_whole(disk, names::LIVE)? else { return Ok(()) };
        self.has_live = true;
        match LiveSet::decode(&bytes) {
            Ok(live) => self.live = Some(live),
            Err(fault) if fault.is_unsupported() => return Err(version(names::LIVE, &fault.to_string())),
            Err(fault) => self.notes.push(format!("{}: {fault}", names::LIVE)),
        }
        Ok(())
    }

    /// The identity that the readable files agree on.
    pub(crate) fn store(&self) -> Option<StoreId> {
        self.owner
    }

    pub(crate) fn is_empty(&self) -> bool {
        !self.has_control && !self.has_live && self.segments.is_empty()
    }

    /// No segment exists and nothing says that one ever did: a store whose creation was cut short, or none.
    pub(crate) fn is_half_created(&self) -> bool {
        let fresh = |live: &LiveSet| live.through == 0 && live.damage.is_empty();
        !self.has_remains
            && self.segments.is_empty()
            && self.control.is_none_or(|slot| slot.durable.is_none() && slot.active == 0)
            && self.live.as_ref().is_none_or(fresh)
    }
}

fn version(name: &str, fault: &str) -> Error {
    Error::new(
        ErrorKind::Version,
        format!("{name}: {fault}; the store was left untouched, use a newer sessionlog"),
    )
}

/// The names in a folder; none where it is missing.
///
/// # Errors
/// It cannot be read.
pub(crate) fn list(disk: &dyn Disk, folder: &str) -> Result<Vec<String>> {
    match disk.list(folder) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        other => other,
    }
}

/// A small file as a whole, `None` where there is none. Sectors that the device does not give read as zeros, which pass
/// no checksum: one of them costs what stands in it, and not the opening of the store.
///
/// # Errors
/// It cannot be opened.
pub(crate) fn read_whole(disk: &dyn Disk, name: &str) -> Result<Option<Vec<u8>>> {
    let file = match disk.open(name, OpenMode::Read) {
        Ok(file) => file,
        Err(error) if error.is_not_found() => return Ok(None),
        Err(error) => return Err(error),
    };
    let length = usize::try_from(file.len()?).unwrap_or(usize::MAX).min(16 << 20);
    let mut bytes = vec![0; length];
    match file.read_at(&mut bytes, 0) {
        Ok(read) => bytes.truncate(read),
        Err(error) => {
            tracing::error!(%error, file = name, "a read failed; sector by sector instead");
            bytes.fill(0);
            for (sector, at) in bytes.chunks_mut(SECTOR).zip((0u64..).step_by(SECTOR)) {
                if file.read_at(sector, at).is_err() {
                    sector.fill(0);
                }
            }
        }
    }
    Ok(Some(bytes))
}

fn prepared_epoch(disk: &dyn Disk, number: u32) -> Option<u64> {
    header_of(disk, &names::prepared(number)).map(|header| header.epoch)
}

fn header_of(disk: &dyn Disk, name: &str) -> Option<SegmentHeader> {
    let file = disk.open(name, OpenMode::Read).ok()?;
    let mut bytes = [0; SEGMENT_HEADER_LEN];
    let read = file.read_at(&mut bytes, 0).ok()?;
    SegmentHeader::decode(bytes.get(..read)?).ok().map(|(header, _)| header)
}
