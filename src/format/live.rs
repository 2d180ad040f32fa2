//! LIVE: which segments the log consists of (F4). Always: replaced as a whole, never written in place; entries ascend.
//! Never: a statement about files, which may be missing (damage) or too many (leftovers).

use super::checksum::crc;
use super::constants::{LIVE_MAGIC, LIVE_VERSION};
use super::lsn::StoreId;
use super::segment_header::HeaderFault;

/// Where the fields in front of the entries stand.
pub(crate) mod fields {
    super::super::layout::layout! { 56;
        MAGIC 0 8 "magic";
        VERSION 8 2 "version";
        ZERO 10 2 "zero";
        REQUIRED 12 4 "required features";
        STORE 16 16 "store id";
        LIVE_VERSION 32 8 "live-set version";
        THROUGH 40 4 "through";
        COUNT 44 4 "entry count";
        LOSSES 48 4 "loss count";
        ZERO_B 52 4 "zero";
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

/// Where the fields of a loss stand.
pub(crate) mod loss_fields {
    super::super::layout::layout! { 16;
        SEGMENT 0 4 "segment number";
        FROM 4 4 "from";
        TO 8 4 "to";
        REASON 12 4 "reason";
    }
}

/// Length in front of the entries.
pub(crate) const LIVE_HEADER_LEN: usize = 56;
/// Length of a loss.
pub(crate) const LIVE_LOSS_LEN: usize = 16;
/// Length of an entry.
pub(crate) const LIVE_ENTRY_LEN: usize = 16;
const CRC_LEN: usize = 4;

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

/// Acknowledged bytes that are gone (P2): kept here so that every later open knows of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LossEntry {
    pub(crate) segment: u32,
    pub(crate) from: u32,
    /// Behind the last damaged byte; `u32::MAX` where the end is not known.
    pub(crate) to: u32,
    /// 1 checksum, 2 zeroed, 3 read error, 4 missing, 5 broken chain, 6 segment header, 7 unexpected bytes.
    pub(crate) reason: u32,
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
    /// Known damage, in log order.
    pub(crate) losses: Vec<LossEntry>,
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
        let losses = u32::try_from(self.losses.len()).expect("a store has fewer damaged places than 2^32");
        fields::LOSSES.put(&mut head, &losses.to_le_bytes());
        let mut file = head.to_vec();
        for entry in &self.entries {
            let mut buf = [0u8; LIVE_ENTRY_LEN];
            entry_fields::NUMBER.put(&mut buf, &entry.number.to_le_bytes());
            entry_fields::STATE.put(&mut buf, &[entry.state as u8]);
            entry_fields::REPLACEMENT.put(&mut buf, &entry.replacement.to_le_bytes());
            file.extend_from_slice(&buf);
        }
        for loss in &self.losses {
            let mut buf = [0u8; LIVE_LOSS_LEN];
            loss_fields::SEGMENT.put(&mut buf, &loss.segment.to_le_bytes());
            loss_fields::FROM.put(&mut buf, &loss.from.to_le_bytes());
            loss_fields::TO.put(&mut buf, &loss.to.to_le_bytes());
            loss_fields::REASON.put(&mut buf, &loss.reason.to_le_bytes());
            file.extend_from_slice(&buf);
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
        if crc(covered) != u32::from_le_bytes(*sum) {
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
        let (all, rest) = body.as_chunks::<LIVE_ENTRY_LEN>();
        let count = fields::COUNT.u32(head) as usize;
        let (parts, losses) = all.split_at_checked(count).ok_or(HeaderFault::Field(fields::COUNT.name))?;
        if !rest.is_empty() || losses.len() != fields::LOSSES.u32(head) as usize {
            return Err(HeaderFault::Field(fields::LOSSES.name));
        }
        if !fields::ZERO.is_zero(head) || !fields::ZERO_B.is_zero(head) {
            return Err(HeaderFault::Field(fields::ZERO.name));
        }
        let through = fields::THROUGH.u32(head);
        let mut entries: Vec<LiveEntry> = Vec::with_capacity(parts.len());
        for part in parts {
            let entry = LiveEntry::decode(part)?;
            let above = entries.last().is_none_or(|before| before.number < entry.number);
            if !above || entry.number == 0 || entry.number > through {
                return Err(HeaderFault::Field(entry_fields::NUMBER.name));
            }
            entries.push(entry);
        }
        let (store, version) = (StoreId(fields::STORE.array(head)), fields::LIVE_VERSION.u64(head));
        let losses = losses.iter().map(|part| LossEntry::decode(part)).collect::<Result<_, _>>()?;
        Ok(Self { store, version, through, entries, losses })
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

impl LossEntry {
    fn decode(buf: &[u8]) -> Result<Self, HeaderFault> {
        let loss = Self {
            segment: loss_fields::SEGMENT.u32(buf),
            from: loss_fields::FROM.u32(buf),
            to: loss_fields::TO.u32(buf),
            reason: loss_fields::REASON.u32(buf),
        };
        if loss.segment == 0 || loss.to < loss.from {
            return Err(HeaderFault::Field(loss_fields::TO.name));
        }
        if loss.reason == 0 || loss.reason > 7 {
            return Err(HeaderFault::Field(loss_fields::REASON.name));
        }
        Ok(loss)
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
        LiveSet {
            store: StoreId([8; 16]),
            version: 4,
            through: 7,
            entries,
            losses: vec![LossEntry { segment: 2, from: 640, to: 704, reason: 1 }],
        }
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
    }
}
