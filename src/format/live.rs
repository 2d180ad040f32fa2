//! LIVE: which segments the log consists of (F4), and which parts of it are known to be damaged (P2). Always: replaced as
//! a whole, never written in place; entries ascend. Never: a statement about files, which may be missing (damage) or too
//! many (leftovers).

use super::checksum::crc;
use super::constants::{LIVE_MAGIC, LIVE_VERSION};
use super::lsn::StoreId;
use super::segment_header::HeaderFault;
use crate::mutation::{self, Mutation};

/// Where the fields in front of the entries stand.
pub(crate) mod fields {
    super::super::layout::layout! { 48;
        MAGIC 0 8 "magic";
        VERSION 8 2 "version";
        ZERO 10 2 "zero";
        REQUIRED 12 4 "required features";
        STORE 16 16 "store id";
        LIVE_VERSION 32 8 "live-set version";
        THROUGH 40 4 "through";
        COUNT 44 4 "entry count";
    }
}

/// Where the fields of an entry stand.
pub(crate) mod entry_fields {
    super::super::layout::layout! { 16;
        NUMBER 0 4 "segment number";
        STATE 4 1 "state";
        ZERO_A 5 3 "zero";
        REPLACEMENT 8 4 "replacement";
        ZERO_B 12 4 "zero";
    }
}

/// Where the fields of a damaged range stand.
pub(crate) mod damage_fields {
    super::super::layout::layout! { 16;
        SEGMENT 0 4 "segment number";
        FROM 4 4 "from";
        TO 8 4 "to";
        REASON 12 4 "reason";
    }
}

/// Length in front of the entries.
pub(crate) const LIVE_HEADER_LEN: usize = 48;
/// Length of an entry.
pub(crate) const LIVE_ENTRY_LEN: usize = 16;
/// Length of a damaged range.
pub(crate) const LIVE_DAMAGE_LEN: usize = 16;
const CRC_LEN: usize = 4;
const DAMAGE_COUNT_LEN: usize = 4;

/// What became of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Member {
    Live = 1,
    /// Nothing of it is needed any more; its file may be gone.
    Retired = 2,
    /// Another file holds its records.
    Replaced = 3,
}

/// A segment at or below `through`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LiveEntry {
    pub(crate) number: u32,
    pub(crate) state: Member,
    /// Number of the file that holds its records; 0 unless replaced.
    pub(crate) replacement: u32,
}

/// Why a range is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum DamageReason {
    /// Bytes were there and did not validate.
    BadBytes = 1,
    /// The segment's file is missing.
    MissingFile = 2,
    /// The device did not give the bytes.
    ReadError = 3,
}

/// A damaged range of a segment, from `from` up to but not including `to`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LiveDamage {
    pub(crate) segment: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) reason: DamageReason,
}

/// The live set.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LiveSet {
    pub(crate) store: StoreId,
    /// Grows with every change.
    pub(crate) version: u64,
    /// Up to this number the entries decide; every number above is live as soon as there is proof of it.
    pub(crate) through: u32,
    /// Ascending by number.
    pub(crate) entries: Vec<LiveEntry>,
    /// Ascending by segment and offset.
    pub(crate) damage: Vec<LiveDamage>,
}

impl LiveSet {
    /// The whole file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let count = u32::try_from(self.entries.len()).expect("segment numbers are u32, one entry each");
        let mut head = [0u8; LIVE_HEADER_LEN];
        fields::MAGIC.put(&mut head, &LIVE_MAGIC);
        fields::VERSION.put(&mut head, &LIVE_VERSION.to_le_bytes());
        fields::STORE.put(&mut head, &self.store.0);
        fields::LIVE_VERSION.put(&mut head, &self.version.to_le_bytes());
        fields::THROUGH.put(&mut head, &self.through.to_le_bytes());
        fields::COUNT.put(&mut head, &count.to_le_bytes());
        let mut file = head.to_vec();
        for entry in &self.entries {
            let mut buf = [0u8; LIVE_ENTRY_LEN];
            entry_fields::NUMBER.put(&mut buf, &entry.number.to_le_bytes());
            entry_fields::STATE.put(&mut buf, &[entry.state as u8]);
            entry_fields::REPLACEMENT.put(&mut buf, &entry.replacement.to_le_bytes());
            file.extend_from_slice(&buf);
        }
        let count = u32::try_from(self.damage.len())
            .expect("damaged ranges do not overlap and are eight bytes at least");
        file.extend_from_slice(&count.to_le_bytes());
        for damage in &self.damage {
            file.extend_from_slice(&damage.encode());
        }
        file.extend_from_slice(&crc(&file).to_le_bytes());
        file
    }

    /// The live set that is exactly `file`.
    pub(crate) fn decode(file: &[u8]) -> Result<Self, HeaderFault> {
        let head = file.get(..LIVE_HEADER_LEN).ok_or(HeaderFault::TooShort)?;
        if fields::MAGIC.get(head) != LIVE_MAGIC {
            return Err(HeaderFault::BadMagic);
        }
        let (covered, sum) = file.split_last_chunk::<CRC_LEN>().ok_or(HeaderFault::TooShort)?;
        if crc(covered) != u32::from_le_bytes(*sum) && !mutation::is_on(Mutation::IgnoreLiveCrc) {
            return Err(HeaderFault::BadCrc);
        }
        let version = fields::VERSION.u16(head);
        if version != LIVE_VERSION {
            return Err(HeaderFault::Version { found: version });
        }
        let bits = fields::REQUIRED.u32(head);
        if bits != 0 {
            return Err(HeaderFault::Features { bits });
        }
        let body = covered.get(LIVE_HEADER_LEN..).ok_or(HeaderFault::TooShort)?;
        let entries_len = (fields::COUNT.u32(head) as usize).checked_mul(LIVE_ENTRY_LEN);
        let parts = entries_len.and_then(|len| body.split_at_checked(len));
        let (entry_bytes, damage_bytes) = parts.ok_or(HeaderFault::Field(fields::COUNT.name))?;
        if !fields::ZERO.is_zero(head) {
            return Err(HeaderFault::Field(fields::ZERO.name));
        }
        let through = fields::THROUGH.u32(head);
        let mut entries: Vec<LiveEntry> = Vec::new();
        for part in entry_bytes.as_chunks::<LIVE_ENTRY_LEN>().0 {
            let entry = LiveEntry::decode(part)?;
            let above = entries.last().is_none_or(|before| before.number < entry.number);
            if !above || entry.number == 0 || entry.number > through {
                return Err(HeaderFault::Field(entry_fields::NUMBER.name));
            }
            entries.push(entry);
        }
        let (store, version) = (StoreId(fields::STORE.array(head)), fields::LIVE_VERSION.u64(head));
        Ok(Self { store, version, through, entries, damage: decode_damage(damage_bytes)? })
    }

    /// What the set says of `number`, given that `highest` is the highest number with proof; `None` = no member.
    pub(crate) fn member(&self, number: u32, highest: u32) -> Option<Member> {
        if number > self.through {
            return (number <= highest).then_some(Member::Live);
        }
        let found = self.entries.binary_search_by_key(&number, |entry| entry.number).ok()?;
        self.entries.get(found).map(|entry| entry.state)
    }

    /// The numbers of live segments in ascending order, given that `highest` is the highest with proof.
    pub(crate) fn live(&self, highest: u32) -> impl Iterator<Item = u32> + '_ {
        let listed =
            self.entries.iter().filter(|entry| entry.state == Member::Live).map(|entry| entry.number);
        let first_above = self.through.saturating_add(1);
        listed.chain(first_above..=highest)
    }

    /// The file that holds the records of `number`: itself, or what replaced it, through any number of replacements.
    pub(crate) fn resolve(&self, number: u32) -> Option<u32> {
        let mut at = number;
        // Each step leads to another entry, so more steps than entries are a circle.
        for _ in 0..=self.entries.len() {
            let Ok(found) = self.entries.binary_search_by_key(&at, |entry| entry.number) else {
                return (at > self.through).then_some(at);
            };
            match self.entries.get(found) {
                Some(LiveEntry { state: Member::Live, number, .. }) => return Some(*number),
                Some(LiveEntry { state: Member::Replaced, replacement, .. }) => at = *replacement,
                _ => return None,
            }
        }
        None
    }
}

/// The damage list, which takes all of `bytes`.
fn decode_damage(bytes: &[u8]) -> Result<Vec<LiveDamage>, HeaderFault> {
    let broken = HeaderFault::Field(DAMAGE_COUNT_NAME);
    let (count, list) = bytes.split_first_chunk::<DAMAGE_COUNT_LEN>().ok_or(broken)?;
    let (parts, rest) = list.as_chunks::<LIVE_DAMAGE_LEN>();
    if !rest.is_empty() || parts.len() != u32::from_le_bytes(*count) as usize {
        return Err(broken);
    }
    let mut damage: Vec<LiveDamage> = Vec::with_capacity(parts.len());
    for part in parts {
        let one = LiveDamage::decode(part)?;
        let above = damage.last().is_none_or(|before| (before.segment, before.to) <= (one.segment, one.from));
        if !above {
            return Err(HeaderFault::Field(damage_fields::FROM.name));
        }
        damage.push(one);
    }
    Ok(damage)
}

const DAMAGE_COUNT_NAME: &str = "damage count";

impl LiveDamage {
    fn encode(&self) -> [u8; LIVE_DAMAGE_LEN] {
        let mut buf = [0u8; LIVE_DAMAGE_LEN];
        damage_fields::SEGMENT.put(&mut buf, &self.segment.to_le_bytes());
        damage_fields::FROM.put(&mut buf, &self.from.to_le_bytes());
        damage_fields::TO.put(&mut buf, &self.to.to_le_bytes());
        damage_fields::REASON.put(&mut buf, &(self.reason as u32).to_le_bytes());
        buf
    }

    fn decode(buf: &[u8]) -> Result<Self, HeaderFault> {
        let reason = match damage_fields::REASON.u32(buf) {
            1 => DamageReason::BadBytes,
            2 => DamageReason::MissingFile,
            3 => DamageReason::ReadError,
            _ => return Err(HeaderFault::Field(damage_fields::REASON.name)),
        };
        let segment = damage_fields::SEGMENT.u32(buf);
        let (from, to) = (damage_fields::FROM.u32(buf), damage_fields::TO.u32(buf));
        if segment == 0 {
            return Err(HeaderFault::Field(damage_fields::SEGMENT.name));
        }
        if from >= to {
            return Err(HeaderFault::Field(damage_fields::TO.name));
        }
        Ok(Self { segment, from, to, reason })
    }
}

impl LiveEntry {
    fn decode(buf: &[u8]) -> Result<Self, HeaderFault> {
        let state = match entry_fields::STATE.u8(buf) {
            1 => Member::Live,
            2 => Member::Retired,
            3 => Member::Replaced,
            _ => return Err(HeaderFault::Field(entry_fields::STATE.name)),
        };
        let replacement = entry_fields::REPLACEMENT.u32(buf);
        if (state == Member::Replaced) != (replacement != 0) {
            return Err(HeaderFault::Field(entry_fields::REPLACEMENT.name));
        }
        if !(entry_fields::ZERO_A.is_zero(buf) && entry_fields::ZERO_B.is_zero(buf)) {
            return Err(HeaderFault::Field(entry_fields::ZERO_A.name));
        }
        Ok(Self { number: entry_fields::NUMBER.u32(buf), state, replacement })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u32, state: Member, replacement: u32) -> LiveEntry {
        LiveEntry { number, state, replacement }
    }

    fn sample() -> LiveSet {
        let entries = vec![
            entry(1, Member::Retired, 0),
            entry(2, Member::Replaced, 7),
            entry(3, Member::Replaced, 7),
            entry(5, Member::Live, 0),
            entry(7, Member::Live, 0),
        ];
        let bad = |segment, from, to, reason| LiveDamage { segment, from, to, reason };
        let damage = vec![
            bad(2, 0, u32::MAX, DamageReason::MissingFile),
            bad(5, 512, 640, DamageReason::BadBytes),
            bad(5, 640, 4096, DamageReason::ReadError),
        ];
        LiveSet { store: StoreId([8; 16]), version: 4, through: 7, entries, damage }
    }

    #[test]
    fn comes_back() {
        assert_eq!(LiveSet::decode(&sample().encode()), Ok(sample()));
        let new = LiveSet { store: StoreId([8; 16]), version: 1, ..LiveSet::default() };
        assert_eq!(LiveSet::decode(&new.encode()), Ok(new));
    }

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let bytes = sample().encode();
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(LiveSet::decode(&bad).is_err(), "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert!(LiveSet::decode(&bytes[..len]).is_err(), "cut at {len}");
        }
    }

    #[test]
    fn members_are_listed_up_to_through_and_proven_above() {
        let set = sample();
        assert_eq!(set.live(9).collect::<Vec<_>>(), [5, 7, 8, 9]);
        assert_eq!(set.live(0).collect::<Vec<_>>(), [5, 7]);
        assert_eq!(set.member(2, 9), Some(Member::Replaced));
        assert_eq!((set.member(4, 9), set.member(10, 9)), (None, None));
        assert_eq!(set.member(9, 9), Some(Member::Live));
        let all = LiveSet { through: u32::MAX, ..sample() };
        assert_eq!(all.live(u32::MAX).count(), 3);
    }

    #[test]
    fn links_resolve_through_replacements_and_not_in_circles() {
        let mut set = sample();
        assert_eq!((set.resolve(2), set.resolve(5), set.resolve(9)), (Some(7), Some(5), Some(9)));
        assert_eq!((set.resolve(1), set.resolve(4)), (None, None));
        set.entries[4] = entry(7, Member::Replaced, 2);
        assert_eq!(set.resolve(2), None);
    }

    #[test]
    fn impossible_entries_are_refused() {
        let broken = |change: fn(&mut LiveSet)| {
            let mut set = sample();
            change(&mut set);
            LiveSet::decode(&set.encode()).unwrap_err()
        };
        assert_eq!(broken(|s| s.entries[1].number = 1), HeaderFault::Field("segment number"));
        assert_eq!(broken(|s| s.through = 6), HeaderFault::Field("segment number"));
        assert_eq!(broken(|s| s.entries[0].number = 0), HeaderFault::Field("segment number"));
        assert_eq!(broken(|s| s.entries[1].replacement = 0), HeaderFault::Field("replacement"));
        assert_eq!(broken(|s| s.entries[3].replacement = 9), HeaderFault::Field("replacement"));
        assert_eq!(broken(|s| s.damage[0].segment = 0), HeaderFault::Field("segment number"));
        assert_eq!(broken(|s| s.damage[1].to = 512), HeaderFault::Field("to"));
        assert_eq!(broken(|s| s.damage[2].from = 639), HeaderFault::Field("from"));
        assert_eq!(broken(|s| s.damage.swap(0, 1)), HeaderFault::Field("from"));
    }
}
