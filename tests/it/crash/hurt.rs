//! A store that something else than a crash has hurt, and what it may then do (G3, P2).

use std::collections::BTreeMap;
use std::sync::Arc;

use sessionlog::testing::oracle::{look, settle};
use sessionlog::testing::workload::{Op, event, open, options};
use sessionlog::testing::{Model, SeededRuntime, SimDisk, Workload};
use sessionlog::{CreateOptions, ErrorKind, RecoveryReport, ResumeOptions, SessionStore};

use super::{Verdict, agrees, fails, worst_cut};

/// How the store was left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Closed,
    Killed,
    /// The power was cut, and everything unsynced is gone: of the witnesses, CONTROL's newest above all.
    Cut,
}

/// A store of a few events, all acknowledged.
pub(crate) struct Small {
    pub(crate) name: &'static str,
    pub(crate) disk: SimDisk,
    pub(crate) model: Model,
    /// The most events that one group holds: what a damaged header of a frame may take.
    group: usize,
    /// By file: for each acknowledged event that stands in it, where its text ends.
    ends: BTreeMap<String, Vec<u64>>,
    pub(crate) left: Left,
    /// The writer had the time to write a witness frame in the end.
    witnessed: bool,
}

pub(crate) fn small(name: &'static str, left: Left, ops: &[Op]) -> Result<Small, String> {
    let disk = SimDisk::new();
    let mut workload = fails(Workload::new(&disk, 11), name)?;
    workload.longest_in_batch = 30;
    fails(workload.run(ops), name)?;
    if left == Left::Closed {
        fails(workload.close(), name)?;
    }
    let (disk, model) = (workload.disk().snapshot(), workload.model.lock().clone());
    // What is judged is damage, not a crash: everything that is there is durable.
    let disk = match left {
        Left::Closed => disk.settled(),
        Left::Killed => disk.kill_writer().settled(),
        Left::Cut => worst_cut(&disk),
    };
    let ends = disk.files().into_iter().map(|file| (file.clone(), ends_in(&disk, &model, &file))).collect();
    let witnessed = matches!(ops.last(), Some(Op::Idle(_)));
    let imported = ops.iter().filter_map(|op| if let Op::Import(count) = op { Some(*count) } else { None });
    let group = imported.max().unwrap_or(0).max(6);
    Ok(Small { name, disk, model, group, ends, left, witnessed })
}

/// Where the texts of the acknowledged events end that stand in a segment. An event that cannot be told from others
/// by its text counts as being at the file's end.
fn ends_in(disk: &SimDisk, model: &Model, file: &str) -> Vec<u64> {
    if kind_of(file) != "segment" {
        return Vec::new();
    }
    let bytes = disk.contents(file).unwrap();
    let mut ends: Vec<u64> = Vec::new();
    for line in model.sessions.values().flat_map(|known| &known.lines) {
        let data = line.split_once(r#""data":"#).unwrap().1.trim_end_matches('}');
        let Some(text) = data.split('"').rfind(|text| text.len() > 8) else {
            ends.push(u64::MAX);
            continue;
        };
        if let Some(at) = bytes.windows(text.len()).position(|window| window == text.as_bytes()) {
            ends.push((at + text.len()) as u64);
        }
    }
    ends
}

impl Small {
    /// The most events that cutting `file` to `length` may take: those behind the cut, and the group that it parts.
    pub(crate) fn reached_by_cut(&self, file: &str, length: u64) -> usize {
        let ends = self.ends.get(file).map_or(&[][..], Vec::as_slice);
        if kind_of(file) == "segment" {
            ends.iter().filter(|end| **end > length).count() + self.group
        } else {
            0
        }
    }

    /// The most events that damage at a place of a file may take.
    pub(crate) fn most(&self, file: &str, offset: u64) -> usize {
        if kind_of(file) == "segment" && offset >= 512 { self.group } else { 0 }
    }

    /// The most events that damage to the first `length` bytes of a file may take: those that end there, and the group
    /// that goes on behind.
    pub(crate) fn most_of_front(&self, file: &str, length: u64) -> usize {
        let ends = self.ends.get(file).map_or(&[][..], Vec::as_slice);
        let there = ends.iter().filter(|end| **end <= length).count();
        if kind_of(file) == "segment" { there + self.group } else { 0 }
    }

    /// Up to where something durable says that the bytes of a segment were acknowledged, whatever becomes of CONTROL:
    /// the sector that the newest frame begins in, since that frame's header tells of all before it.
    pub(crate) fn vouched(&self, file: &str) -> u64 {
        let newest = self.disk.files().into_iter().rfind(|name| kind_of(name) == "segment");
        if newest.as_deref() != Some(file) {
            return u64::MAX;
        }
        if self.left == Left::Cut && self.witnessed {
            // The witness frame stands behind the newest event.
            let last = self
                .ends
                .get(file)
                .and_then(|ends| ends.iter().filter(|end| **end < u64::MAX).max())
                .copied();
            return last.unwrap_or(0) / 512 * 512;
        }
        let bytes = self.disk.contents(file).unwrap();
        let last = bytes.windows(4).rposition(|window| window == b"\xFFSLF").unwrap_or(0) as u64;
        last / 512 * 512
    }
}

/// The stores that damage is tried on, a few kilobytes each.
pub(crate) fn stores() -> Result<Vec<Small>, String> {
    use Op::{Append, Batch, Create, FlushAll, Fork, Idle, Import, Kill, Reopen};
    let few =
        [Create, Append(20), FlushAll, Append(30), Create, Append(10), FlushAll, Fork, Batch(3), FlushAll];
    let mut witnessed = few.to_vec();
    witnessed.push(Idle(50));
    let mut reopened = few.to_vec();
    // A frame of more than a sector, too.
    reopened.extend([Reopen, Append(25), FlushAll, Append(600), FlushAll]);
    let mut sealed = reopened.clone();
    sealed.push(Idle(50));
    // A segment a life, each with its index; and in the end a run of the directory.
    let mut lives = vec![Create, Append(20), FlushAll, Kill, Append(30), Create, FlushAll, Idle(50), Kill];
    lives.extend([Append(20), Fork, Batch(3), FlushAll, Idle(50), Kill, Append(20), FlushAll, Idle(50)]);
    // More than one batch holds, twice, and what is appended after.
    let extended = [Create, Append(20), FlushAll, Import(12), FlushAll, Import(12), FlushAll];
    let mut goes_on = extended[..5].to_vec();
    goes_on.extend([Idle(30), Append(20), FlushAll]);
    let all = [
        ("closed", Left::Closed, &few[..]),
        ("killed", Left::Killed, &few),
        ("killed with a witness", Left::Killed, &witnessed),
        ("reopened, closed", Left::Closed, &reopened),
        ("reopened, killed", Left::Killed, &reopened),
        ("four lives, closed", Left::Closed, &lives),
        ("four lives, killed", Left::Killed, &lives),
        ("extended, closed", Left::Closed, &extended),
        ("extended, killed", Left::Killed, &goes_on),
        ("power cut behind a witness", Left::Cut, &sealed),
        ("power cut", Left::Cut, &reopened),
    ];
    all.into_iter().map(|(name, left, ops)| small(name, left, ops)).collect()
}

/// What a damaged store may do. Err is the reason why it may not.
pub(crate) fn judge(
    disk: &SimDisk,
    model: &Model,
    file: &str,
    most: usize,
    deep: bool,
) -> Result<usize, String> {
    let reader = fails(open_reader(disk), "it does not open for reading")?;
    let reader = look_at(&reader, model, file)?;
    let (store, _) = fails(open(disk, 5), "it does not open for writing")?;
    let told = store.recovery().clone();
    let writer = look_at(&store, model, file)?;
    drop(store);
    if deep || !writer.is_empty() {
        // A second opening tells the same, and the first one destroyed nothing.
        let (store, _) = fails(open(disk, 6), "it does not open again")?;
        let again = look_at(&store, model, file)?;
        agrees(again == writer, || {
            format!(
                "the second opening sees other losses: {} events, the first {}",
                again.len(),
                writer.len()
            )
        })?;
        still_told(&told, store.recovery())?;
        drop(store);
        go_on(disk, model, &writer)?;
    }
    let lost = reader.len().max(writer.len());
    agrees(lost <= most, || format!("{lost} events lost; the damage can reach {most} at most"))?;
    Ok(lost)
}

/// What was told as lost is told by every later opening.
pub(crate) fn still_told(before: &RecoveryReport, now: &RecoveryReport) -> Verdict {
    let covers = |range: &sessionlog::Loss, of: &sessionlog::Loss| {
        range.file == of.file
            && range.offset <= of.offset
            && range.offset + range.length >= of.offset + of.length
    };
    let gone = before.losses.iter().find(|loss| !now.losses.iter().any(|range| covers(range, loss)));
    agrees(gone.is_none(), || format!("a later opening does not tell of {gone:?}: {:?}", now.losses))
}

/// A new session works in a store with damage, and nothing of the lost ones comes back under it. A session that lost
/// its newest events goes on only when that is accepted, and then with seqs that none of them had.
pub(crate) fn go_on(disk: &SimDisk, model: &Model, lost: &[(String, u64)]) -> Verdict {
    let mut settled = model.clone();
    let (store, _) = fails(open(disk, 7), "third opening")?;
    fails(settle(&store, &mut settled), "settling")?;
    let id = "after the damage";
    let session = fails(store.create(CreateOptions::new().id(id)), "no new session")?;
    let (new, line) = event(0, "new").unwrap();
    let mut model = model.clone();
    model.attempt_session(id, Vec::new());
    model.attempt(id, [line]);
    fails(session.append(new), "no new event")?;
    for (id, known) in model.sessions.clone() {
        let last = known.acknowledged.checked_sub(1).map(|last| last as u64);
        if last.is_some_and(|last| lost.contains(&(id.clone(), last))) && store.open(&id).is_ok() {
            take_the_loss(&store, &id, known.acknowledged as u64)?;
        }
    }
    fails(store.close(), "close")?;
    model.acknowledge(id);
    let (store, _) = fails(open(disk, 8), "fourth opening")?;
    let seq = fails(store.open(id), id)?.seq();
    agrees(seq == 1, || format!("the new session has {seq} events"))?;
    let wrong = look(&store, &model).wrong;
    let wrong: Vec<_> = wrong.into_iter().filter(|what| !what.contains("goes on")).collect();
    agrees(wrong.is_empty(), || format!("wrong data after going on: {wrong:?}"))
}

fn take_the_loss(store: &SessionStore, id: &str, acknowledged: u64) -> Verdict {
    // Where the index still knows of the event, its seq is not in danger, and whoever reads it is told.
    let shorter = fails(store.open(id), id)?.seq() < acknowledged;
    match store.resume(id) {
        Err(error) if error.kind() == ErrorKind::Corrupt => {}
        Err(error) => return Err(format!("{id} has lost its newest event; resuming says {error}")),
        Ok(_) if shorter => {
            return Err(format!("{id} has lost its newest event and is resumed as if it were whole"));
        }
        Ok(resumed) => resumed.session.detach(),
    }
    let accept = ResumeOptions::new().accept_loss(true);
    let session = fails(store.resume_with(id, accept), &format!("{id}, accepting the loss"))?.session;
    let seq = session.seq();
    agrees(seq >= acknowledged, || format!("{id} goes on at seq {seq}; {acknowledged} were taken"))?;
    let (new, _) = event(usize::try_from(seq).unwrap(), "goes on").unwrap();
    fails(session.append(new).map(drop), id)
}

fn open_reader(disk: &SimDisk) -> sessionlog::Result<SessionStore> {
    let runtime = Arc::new(SeededRuntime::new(4));
    options(disk, &runtime).open_read_only("")
}

/// Which acknowledged events an opened store lost; Err if it says nothing of it, or says something wrong.
fn look_at(store: &SessionStore, model: &Model, file: &str) -> Result<Vec<(String, u64)>, String> {
    let sight = look(store, model);
    agrees(sight.wrong.is_empty(), || format!("wrong data: {:?}", sight.wrong))?;
    let silent = !sight.lost.is_empty() && sight.told.is_empty();
    agrees(!silent, || format!("lost without a word: {:?}", sight.lost))?;
    let named = sight.lost.is_empty() || sight.told.iter().any(|told| told.contains(file));
    agrees(named, || format!("lost, and the file is not named: {:?}", sight.told))?;
    Ok(sight.lost)
}

pub(crate) fn kind_of(file: &str) -> &'static str {
    match file {
        "LOCK" | "CONTROL" | "LIVE" => "fixed",
        name if name.ends_with(".seg") => "segment",
        name if name.ends_with(".prep") => "prepared",
        _ => "derived",
    }
}
