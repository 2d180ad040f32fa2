//! The one scanner: walks a segment's frames and decides, at each bad spot, between torn and damaged (E2).
//!
//! It feeds recovery, index rebuilding, followers and verification. It hands out frames in order, reports every
//! bad spot with its place, and never jumps by an unverified length, writes, or stops at a read error below what
//! is known to be durable.

use std::fmt;
use std::sync::Arc;

use crate::disk::DiskFile;
use crate::error::{Error, ErrorKind, Result};
use crate::format::scan::LOOKAHEAD_OVERLAP;
use crate::format::{
    Binding, Candidate, FIRST_FRAME, FrameFault, FrameStep, FrameView, Lsn, RecordFault, SECTOR, ScanContext,
    find_candidate, frame_kind, names, read_frame,
};
use crate::mutation::{self, Mutation};

use super::window::Window;

/// How much is searched at a time behind a bad spot.
const LOOKAHEAD: u32 = 128 << 10;

/// What is known of the segment before it is scanned.
#[derive(Debug, Clone)]
pub(crate) struct ScanPlan {
    pub number: u32,
    pub binding: Binding,
    pub capacity: u32,
    pub max_epoch: u64,
    /// Where to begin, with the chain value expected there.
    pub from: u32,
    pub chain: u32,
    /// Epoch of the frame before `from`.
    pub epoch: u64,
    /// The recorded end, for a segment that has a successor.
    pub end: Option<u32>,
    /// Everything below is known to be durable (CONTROL, a later header).
    pub durable: u32,
    /// Stop there even if more would validate: a follower reads what was acknowledged.
    pub stop: Option<u32>,
}

/// Why bytes could not be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    Checksum,
    Zeroed,
    ReadError,
    Missing,
    Chain,
    Header,
    Unexpected,
}

impl Reason {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Checksum => "the checksum does not match",
            Self::Zeroed => "zeros where acknowledged bytes were",
            Self::ReadError => "the device returns a read error",
            Self::Missing => "the file or its end is missing",
            Self::Chain => "a frame does not follow its predecessor",
            Self::Header => "the segment header is damaged",
            Self::Unexpected => "bytes that no writer put there",
        }
    }
}

/// Acknowledged bytes that are damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadSpot {
    pub segment: u32,
    pub from: u32,
    pub to: u32,
    pub reason: Reason,
}

/// Adds a spot behind others; one that only makes the last one longer is not a second one. So a crowd of bad records
/// costs no more than the sound ones between them (G7).
pub(crate) fn add_spot(spots: &mut Vec<BadSpot>, spot: BadSpot) {
    match spots.last_mut() {
        Some(last)
            if (last.segment, last.to, last.reason) == (spot.segment, spot.from, spot.reason)
                && last.from < last.to =>
        {
            last.to = spot.to;
        }
        _ => spots.push(spot),
    }
}

/// What the scanner hands out.
pub(crate) enum Found<'a> {
    /// An accepted frame; single records of it may be damaged, which is reported before as a bad spot.
    Frame(&'a FrameView<'a>),
    Bad(BadSpot),
}

/// Where the log ends, and what lies behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScanEnd {
    /// Behind the last frame, or behind the last damage.
    pub end: u32,
    pub chain: u32,
    pub last_epoch: u64,
    /// Highest durable-up-to that a header promised.
    pub promised: Lsn,
    /// Behind the last byte that is not zero: more than `end` when a tail is torn.
    pub residue_end: u32,
    /// The last frame is a close mark, a seal.
    pub closed: bool,
    pub sealed: bool,
    pub damaged: bool,
    /// The residue may have been acknowledged: it begins with a whole frame header.
    pub doubtful: bool,
    pub frames: u64,
    /// End of the frames that a header or CONTROL promises as durable.
    pub witnessed: u32,
    pub bytes_read: u64,
}

enum Verdict {
    Torn,
    Damaged(BadSpot),
}

pub(crate) struct Scanner<'p> {
    plan: &'p ScanPlan,
    window: Window,
    at: u32,
    chain: Option<u32>,
    end: ScanEnd,
}

/// Scans as `plan` says and calls `visit` for everything in log order.
///
/// # Errors
/// Only what `visit` returns, a file that cannot be measured, or a format version that this build does not read.
pub(crate) fn scan(
    file: Arc<dyn DiskFile>,
    plan: &ScanPlan,
    visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
) -> Result<ScanEnd> {
    let window = Window::new(file, plan.stop.unwrap_or(u32::MAX))?;
    let end = ScanEnd {
        end: plan.from,
        chain: plan.chain,
        last_epoch: plan.epoch,
        promised: Lsn::NONE,
        residue_end: plan.from,
        closed: false,
        sealed: false,
        damaged: false,
        doubtful: false,
        frames: 0,
        witnessed: plan.durable.max(FIRST_FRAME),
        bytes_read: 0,
    };
    let scanner = Scanner { plan, window, at: plan.from, chain: Some(plan.chain), end };
    scanner.run(visit)
}

/// One look at the current place.
enum Look {
    Accepted { end: u32 },
    Bad { fault: Reason, frame_end: Option<u32> },
    Nothing,
}

impl Scanner<'_> {
    fn run(mut self, visit: &mut dyn FnMut(Found<'_>) -> Result<()>) -> Result<ScanEnd> {
        loop {
            if self.plan.end.is_some_and(|end| self.at >= end)
                || self.plan.stop.is_some_and(|stop| self.at >= stop)
            {
                break;
            }
            match self.look(visit)? {
                Look::Accepted { end } => self.at = end,
                Look::Nothing => match self.decide(Reason::Zeroed, None)? {
                    Verdict::Torn => break,
                    Verdict::Damaged(spot) => self.skip(spot, visit)?,
                },
                Look::Bad { fault, frame_end } => {
                    let known = self.end.witnessed;
                    match self.decide(fault, frame_end)? {
                        Verdict::Torn => {
                            // Nobody knows what stands in a place that cannot be read.
                            self.end.doubtful = frame_end.is_some() || fault == Reason::ReadError;
                            break;
                        }
                        // A later header vouches for this frame: its sound records count after all.
                        Verdict::Damaged(_) if frame_end.is_some() && self.end.witnessed > known => {}
                        Verdict::Damaged(spot) => self.skip(spot, visit)?,
                    }
                }
            }
        }
        self.end.end = self.at;
        if self.plan.end.is_none() && self.plan.stop.is_none() {
            self.end.residue_end = self.window.residue_end(self.at);
        } else {
            self.end.residue_end = self.at;
        }
        self.end.bytes_read = self.window.bytes_read;
        Ok(self.end)
    }

    fn context(&self) -> ScanContext {
        ScanContext {
            binding: self.plan.binding,
            min_epoch: self.end.last_epoch,
            max_epoch: self.plan.max_epoch,
            chain: self.chain,
            end_limit: self.plan.end.unwrap_or(self.plan.capacity),
        }
    }

    fn look(&mut self, visit: &mut dyn FnMut(Found<'_>) -> Result<()>) -> Result<Look> {
        let context = self.context();
        let at = Lsn::new(self.plan.number, self.at);
        let mut want = 64 << 10;
        loop {
            let here = self.at;
            let left = self.window.len().saturating_sub(here);
            let bytes = self.window.at(here, want);
            let short = bytes.len() >= usize::try_from(left).unwrap_or(usize::MAX);
            match read_frame(bytes, at, &context) {
                FrameStep::NeedMore(need) if !short => want = need.max(want.saturating_mul(2)),
                FrameStep::NeedMore(need) => {
                    let end = u32::try_from(need).ok().and_then(|need| here.checked_add(need));
                    return Ok(if left == 0 || bytes.iter().all(|byte| *byte == 0) {
                        Look::Nothing
                    } else {
                        Look::Bad { fault: Reason::Missing, frame_end: end }
                    });
                }
                FrameStep::Zero | FrameStep::End => {
                    let unreadable = self.window.is_unreadable(here, here.saturating_add(1));
                    return Ok(if unreadable {
                        Look::Bad { fault: Reason::ReadError, frame_end: None }
                    } else {
                        Look::Nothing
                    });
                }
                FrameStep::Bad(fault) if fault.is_unsupported() => {
                    return Err(unsupported(self.plan.number, self.at, &fault));
                }
                FrameStep::Bad(fault) => {
                    let unreadable = self.window.is_unreadable(here, here.saturating_add(64));
                    let fault = match (unreadable, fault) {
                        (true, _) => Reason::ReadError,
                        (false, FrameFault::Chain { .. }) => Reason::Chain,
                        (false, _) => Reason::Checksum,
                    };
                    if fault == Reason::Chain {
                        // The frame itself is whole: what it should follow is not there any more.
                        self.chain = None;
                        let spot = BadSpot { segment: self.plan.number, from: here, to: here, reason: fault };
                        self.end.damaged = true;
                        visit(Found::Bad(spot))?;
                        return self.look(visit);
                    }
                    return Ok(Look::Bad { fault, frame_end: None });
                }
                FrameStep::Frame(view) => {
                    return accept(
                        &view,
                        self.plan.number,
                        &mut self.end,
                        &mut self.chain,
                        visit,
                        |end, view| judge_frame(self.plan, end, view),
                    );
                }
            }
        }
    }

    /// E2: torn, unless something says that the bytes here were durable.
    fn decide(&mut self, reason: Reason, frame_end: Option<u32>) -> Result<Verdict> {
        let next = self.look_ahead(frame_end)?;
        let limit = self.plan.end.unwrap_or(0).max(self.end.witnessed);
        let whole = frame_end.is_some_and(|end| reason == Reason::Checksum && !self.has_zero_sector(end));
        let whole = whole && !mutation::is_on(Mutation::NoZeroSectorRule)
            || next.is_some() && mutation::is_on(Mutation::LaterFrameProves);
        // A sector is written whole or not at all, so a header that is neither zero nor valid was overwritten.
        let overwritten = reason == Reason::Checksum && frame_end.is_none();
        if self.at >= limit && !whole && !overwritten {
            return Ok(Verdict::Torn);
        }
        let to = match next {
            Some(next) => next,
            None if self.plan.end.is_some() => limit,
            None => limit.max(frame_end.unwrap_or(0)).max(self.window.residue_end(self.at)),
        };
        Ok(Verdict::Damaged(BadSpot {
            segment: self.plan.number,
            from: self.at,
            to: to.max(self.at.saturating_add(1)),
            reason,
        }))
    }

    /// Looks for whole frames behind the bad spot: what their headers promise counts as evidence, and the first
    /// one is where scanning could go on.
    fn look_ahead(&mut self, frame_end: Option<u32>) -> Result<Option<u32>> {
        let mut context = self.context();
        context.chain = None;
        let mut at = frame_end.unwrap_or(self.at.saturating_add(8)).max(self.at.saturating_add(8)) & !7;
        let overlap = u32::try_from(LOOKAHEAD_OVERLAP).unwrap_or(512);
        let mut first = None;
        while at < self.window.len() {
            let base = Lsn::new(self.plan.number, at);
            let bytes = self.window.at(at, LOOKAHEAD as usize);
            if bytes.len() < 64 {
                break;
            }
            let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
            match find_candidate(bytes, base, &context) {
                Some(Candidate { lsn, header }) => {
                    let header =
                        header.map_err(|fault| unsupported(self.plan.number, lsn.offset(), &fault))?;
                    first = first.or(Some(lsn.offset()));
                    self.promise(header.durable);
                    // Candidates inside a frame are never looked at.
                    let end = u32::try_from(header.end()).unwrap_or(u32::MAX);
                    at = end.max(lsn.offset().saturating_add(8));
                }
                // Candidates may straddle the pieces: the next piece begins before the end of this one.
                None if length < LOOKAHEAD => break,
                None => at = at.saturating_add(length.saturating_sub(overlap) & !7),
            }
        }
        Ok(first)
    }

    fn promise(&mut self, durable: Lsn) {
        promise(&mut self.end, self.plan.number, durable);
    }

    fn has_zero_sector(&mut self, frame_end: u32) -> bool {
        let sector = u32::try_from(SECTOR).unwrap_or(512);
        if frame_end > self.window.len() {
            return true;
        }
        let first = self.at / sector * sector + sector;
        let mut at = first;
        while at < frame_end {
            let length = usize::try_from(frame_end.saturating_sub(at).min(sector)).unwrap_or(SECTOR);
            let bytes = self.window.at(at, length);
            if bytes.iter().take(length).all(|byte| *byte == 0) {
                return true;
            }
            at = at.saturating_add(sector);
        }
        false
    }

    fn skip(&mut self, spot: BadSpot, visit: &mut dyn FnMut(Found<'_>) -> Result<()>) -> Result<()> {
        self.end.damaged = true;
        self.end.closed = false;
        self.chain = None;
        self.at = spot.to;
        visit(Found::Bad(spot))
    }
}

/// Something of a later version: refused by name, whatever else is there.
fn unsupported(number: u32, at: u32, fault: &dyn fmt::Display) -> Error {
    let text = format!(
        "{} at byte {}: {fault}; it was left untouched, use a newer sessionlog",
        names::segment(number),
        at
    );
    Error::new(ErrorKind::Version, text)
}

fn promise(end: &mut ScanEnd, number: u32, durable: Lsn) {
    end.promised = end.promised.max(durable);
    if durable.segment() == number {
        end.witnessed = end.witnessed.max(durable.offset());
    }
}

/// Whether a frame with damaged parts is taken for durable: then its sound records count.
fn judge_frame(plan: &ScanPlan, end: &ScanEnd, view: &FrameView<'_>) -> bool {
    let limit = plan.end.unwrap_or(0).max(end.witnessed);
    let whole = !view.has_zero_sector() && !mutation::is_on(Mutation::NoZeroSectorRule);
    view.end.offset() <= limit || whole || mutation::is_on(Mutation::TornFrameCounts)
}

fn accept(
    view: &FrameView<'_>,
    number: u32,
    end: &mut ScanEnd,
    chain: &mut Option<u32>,
    visit: &mut dyn FnMut(Found<'_>) -> Result<()>,
    durable: impl Fn(&ScanEnd, &FrameView<'_>) -> bool,
) -> Result<Look> {
    let frame_end = view.end.offset();
    promise(end, number, view.header.durable);
    if !view.is_intact() && !durable(end, view) {
        return Ok(Look::Bad { fault: Reason::Missing, frame_end: Some(frame_end) });
    }
    for (from, to, reason) in bad_ranges(view, number)? {
        end.damaged = true;
        visit(Found::Bad(BadSpot { segment: number, from, to, reason }))?;
    }
    end.chain = view.crc;
    end.last_epoch = end.last_epoch.max(view.header.epoch);
    end.closed = view.header.kind == frame_kind::CLOSE;
    end.sealed = view.header.kind == frame_kind::SEAL;
    end.frames = end.frames.saturating_add(1);
    *chain = Some(view.crc);
    visit(Found::Frame(view))?;
    Ok(Look::Accepted { end: frame_end })
}

/// The damaged parts of a frame that is taken for durable. A record may be whole and yet be none that a writer makes.
///
/// # Errors
/// A record of a later version.
fn bad_ranges(view: &FrameView<'_>, number: u32) -> Result<Vec<(u32, u32, Reason)>> {
    let mut ranges = Vec::new();
    for damage in view.records().filter_map(std::result::Result::err) {
        let from = damage.lsn.offset();
        if damage.fault.is_unsupported() {
            return Err(unsupported(number, from, &damage.fault));
        }
        let reason = match damage.fault {
            RecordFault::BadMeta => Reason::Unexpected,
            _ => Reason::Checksum,
        };
        ranges.push((from, from.saturating_add(damage.len), reason));
    }
    if ranges.is_empty() && !view.is_intact() {
        // Only the table or the pad is hurt: the records walked through whole.
        let end = view.end.offset();
        let tail = view.header.table_len.saturating_add(u32::from(view.header.pad_len));
        ranges.push((end.saturating_sub(tail.max(1)), end, Reason::Checksum));
    }
    Ok(ranges)
}
