//! Names of the files of a store. Always: one spelling a file, lower-case hex of fixed width; a parser takes exactly what
//! its formatter gives. Never: paths outside the store directory.

use super::lsn::Lsn;

pub(crate) const LOCK: &str = "LOCK";
pub(crate) const CONTROL: &str = "CONTROL";
pub(crate) const CONTROL_TEMP: &str = "CONTROL.tmp";
pub(crate) const LIVE: &str = "LIVE";
pub(crate) const LIVE_TEMP: &str = "LIVE.tmp";
/// Folder of segments, prepared segments and segment indexes.
pub(crate) const SEGMENTS: &str = "segments";
/// Folder of directory runs.
pub(crate) const DIRECTORY: &str = "directory";
/// Folder of bytes that were cut.
pub(crate) const QUARANTINE: &str = "quarantine";

/// Path of a segment: `segments/NNNNNNNN.seg`.
pub(crate) fn segment(number: u32) -> String {
    format!("{SEGMENTS}/{number:08x}.seg")
}

/// Path of a prepared file, which is no segment yet (F2): `segments/NNNNNNNN.prep`.
pub(crate) fn prepared(number: u32) -> String {
    format!("{SEGMENTS}/{number:08x}.prep")
}

/// Path of the index of an ended segment: `segments/NNNNNNNN.idx`.
pub(crate) fn index(number: u32) -> String {
    format!("{SEGMENTS}/{number:08x}.idx")
}

/// Path under which an index is written before it gets its name.
pub(crate) fn index_temp(number: u32) -> String {
    format!("{SEGMENTS}/{number:08x}.idx.tmp")
}

/// Path of the directory run over the places behind `from` up to `to`: `directory/FROM-TO.run`.
pub(crate) fn run(from: Lsn, to: Lsn) -> String {
    format!("{DIRECTORY}/{:016x}-{:016x}.run", from.0, to.0)
}

/// Path under which a run is written before it gets its name.
pub(crate) fn run_temp(from: Lsn, to: Lsn) -> String {
    format!("{DIRECTORY}/{:016x}-{:016x}.run.tmp", from.0, to.0)
}

/// Path of bytes cut from `segment` at `offset` when `epoch` was over.
pub(crate) fn quarantine(segment: u32, offset: u32, epoch: u64) -> String {
    format!("{QUARANTINE}/{segment:08x}-{offset:08x}-{epoch:016x}.cut")
}

/// A file of the folder `segments`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SegmentsEntry {
    Segment(u32),
    Prepared(u32),
    Index(u32),
    IndexTemp(u32),
    /// No name that the format gives: left alone.
    Other,
}

/// What `name`, without its folder, stands for in `segments`. Numbers begin at 1.
pub(crate) fn parse_segments_entry(name: &str) -> SegmentsEntry {
    let Some((stem, kind)) = name.split_once('.') else { return SegmentsEntry::Other };
    let Some(number) = hex32(stem).filter(|number| *number > 0) else { return SegmentsEntry::Other };
    match kind {
        "seg" => SegmentsEntry::Segment(number),
        "prep" => SegmentsEntry::Prepared(number),
        "idx" => SegmentsEntry::Index(number),
        "idx.tmp" => SegmentsEntry::IndexTemp(number),
        _ => SegmentsEntry::Other,
    }
}

/// The range of a directory run's `name`, without its folder.
pub(crate) fn parse_run(name: &str) -> Option<(Lsn, Lsn)> {
    let (from, to) = name.strip_suffix(".run")?.split_once('-')?;
    Some((Lsn(hex64(from)?), Lsn(hex64(to)?)))
}

/// Segment, offset and epoch of a quarantined piece's `name`, without its folder.
pub(crate) fn parse_quarantine(name: &str) -> Option<(u32, u32, u64)> {
    let mut parts = name.strip_suffix(".cut")?.split('-');
    let found = (hex32(parts.next()?)?, hex32(parts.next()?)?, hex64(parts.next()?)?);
    parts.next().is_none().then_some(found)
}

fn hex32(text: &str) -> Option<u32> {
    if text.len() != 8 {
        return None;
    }
    u32::try_from(hex(text)?).ok()
}

fn hex64(text: &str) -> Option<u64> {
    if text.len() != 16 {
        return None;
    }
    hex(text)
}

/// Lower-case hex only; `from_str_radix` alone would take `+1` and capitals, two names for one file.
fn hex(text: &str) -> Option<u64> {
    let plain = text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    if plain { u64::from_str_radix(text, 16).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str) -> &str {
        path.rsplit('/').next().unwrap()
    }

    #[test]
    fn names_come_back() {
        assert_eq!(segment(0x1f), "segments/0000001f.seg");
        assert_eq!(parse_segments_entry(name(&segment(31))), SegmentsEntry::Segment(31));
        assert_eq!(parse_segments_entry(name(&prepared(u32::MAX))), SegmentsEntry::Prepared(u32::MAX));
        assert_eq!(parse_segments_entry(name(&index(2))), SegmentsEntry::Index(2));
        assert_eq!(parse_segments_entry(name(&index_temp(2))), SegmentsEntry::IndexTemp(2));
        let (from, to) = (Lsn::NONE, Lsn::new(3, 4096));
        assert_eq!(run(from, to), "directory/0000000000000000-0000000300001000.run");
        assert_eq!(parse_run(name(&run(from, to))), Some((from, to)));
        assert_eq!(parse_run(name(&run_temp(from, to))), None);
        assert_eq!(quarantine(1, 512, 9), "quarantine/00000001-00000200-0000000000000009.cut");
        assert_eq!(parse_quarantine(name(&quarantine(1, 512, 9))), Some((1, 512, 9)));
    }

    #[test]
    fn other_spellings_are_no_names() {
        for bad in [
            "00000000.seg",
            "0000001F.seg",
            "1.seg",
            "+0000001.seg",
            "00000001.SEG",
            "00000001",
            "000000011.seg",
            "00000001.seg.tmp",
            "é0000001.seg",
            "",
            ".seg",
        ] {
            assert_eq!(parse_segments_entry(bad), SegmentsEntry::Other, "{bad}");
        }
        assert_eq!(parse_quarantine("00000001-00000200-0000000000000009-1.cut"), None);
        assert_eq!(parse_run("0-1.run"), None);
    }
}
