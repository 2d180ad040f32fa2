//! CONTROL: the watermark outside the log (E1), in two slots that are written in turn. Always: a slot is one sector on a
//! page of its own, so that writing one cannot hurt the other. Never: rewritten while it is the newest one.

use super::checksum::crc;
use super::constants::{CONTROL_MAGIC, CONTROL_VERSION, PAGE, SECTOR};
use super::lsn::{Lsn, StoreId};
use super::segment_header::HeaderFault;
use crate::mutation::{self, Mutation};

/// Where the fields of a slot stand.
pub(crate) mod fields {
    super::super::layout::layout! { 512;
        MAGIC 0 8 "magic";
        VERSION 8 2 "version";
        SLOT_LEN 10 2 "slot length";
        STATE 12 1 "state";
        ZERO_A 13 3 "zero";
        STORE 16 16 "store id";
        EPOCH 32 8 "epoch";
        COUNTER 40 8 "counter";
        DURABLE 48 8 "durable LSN";
        WRITTEN 56 8 "written LSN";
        LIVE_VERSION 64 8 "live-set version";
        DIRECTORY_TO 72 8 "directory LSN";
        LAST_INDEX 80 8 "last index frame";
        NEXT_DENSE 88 8 "next dense id";
        ACTIVE_SALT 96 8 "active salt";
        ACTIVE_EPOCH 104 8 "active epoch";
        ACTIVE 112 4 "active segment";
        REQUIRED 116 4 "required features";
        ZERO_B 120 388 "zero";
        CRC 508 4 "slot CRC";
    }
}

/// Length of the file.
pub(crate) const CONTROL_LEN: usize = 2 * PAGE;

/// Whether the last writer closed the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub(crate) enum State {
    /// A writer is at work, or died.
    #[default]
    Open = 1,
    /// The log ends with a close mark at the written LSN.
    Closed = 2,
}

/// One slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct ControlSlot {
    pub(crate) state: State,
    pub(crate) store: StoreId,
    pub(crate) epoch: u64,
    /// Grows by one a write, from 1; its parity is the slot.
    pub(crate) counter: u64,
    /// Everything before this place is durable.
    pub(crate) durable: Lsn,
    /// Everything before this place was handed to the operating system.
    pub(crate) written: Lsn,
    pub(crate) live_version: u64,
    /// The end of the chain of directory runs.
    pub(crate) directory_to: Lsn,
    /// The newest index frame of the active segment, or none.
    pub(crate) last_index: Lsn,
    pub(crate) next_dense: u64,
    /// Number of the active segment; 0 = there is none yet.
    pub(crate) active: u32,
    /// Salt in the active segment's header: its frames can be believed even where that sector is lost.
    pub(crate) active_salt: u64,
    /// Epoch in the active segment's header.
    pub(crate) active_epoch: u64,
}

impl ControlSlot {
    /// The sector to be written at [`offset`](Self::offset).
    pub(crate) fn encode(&self) -> [u8; SECTOR] {
        let mut buf = [0u8; SECTOR];
        fields::MAGIC.put(&mut buf, &CONTROL_MAGIC);
        fields::VERSION.put(&mut buf, &CONTROL_VERSION.to_le_bytes());
        fields::SLOT_LEN.put(&mut buf, &SLOT_LEN.to_le_bytes());
        fields::STATE.put(&mut buf, &[self.state as u8]);
        fields::STORE.put(&mut buf, &self.store.0);
        fields::EPOCH.put(&mut buf, &self.epoch.to_le_bytes());
        fields::COUNTER.put(&mut buf, &self.counter.to_le_bytes());
        fields::DURABLE.put(&mut buf, &self.durable.0.to_le_bytes());
        fields::WRITTEN.put(&mut buf, &self.written.0.to_le_bytes());
        fields::LIVE_VERSION.put(&mut buf, &self.live_version.to_le_bytes());
        fields::DIRECTORY_TO.put(&mut buf, &self.directory_to.0.to_le_bytes());
        fields::LAST_INDEX.put(&mut buf, &self.last_index.0.to_le_bytes());
        fields::NEXT_DENSE.put(&mut buf, &self.next_dense.to_le_bytes());
        fields::ACTIVE_SALT.put(&mut buf, &self.active_salt.to_le_bytes());
        fields::ACTIVE_EPOCH.put(&mut buf, &self.active_epoch.to_le_bytes());
        fields::ACTIVE.put(&mut buf, &self.active.to_le_bytes());
        let sum = crc(covered(&buf));
        fields::CRC.put(&mut buf, &sum.to_le_bytes());
        buf
    }

    /// Where the slot stands in the file.
    pub(crate) fn offset(&self) -> u64 {
        (self.counter % 2) * PAGE as u64
    }

    /// The slot at the front of `bytes`.
    pub(crate) fn decode(bytes: &[u8]) -> Result<Self, HeaderFault> {
        let buf = bytes.get(..SECTOR).ok_or(HeaderFault::TooShort)?;
        if fields::MAGIC.get(buf) != CONTROL_MAGIC {
            return Err(HeaderFault::BadMagic);
        }
        if crc(covered(buf)) != fields::CRC.u32(buf) && !mutation::is_on(Mutation::IgnoreControlCrc) {
            return Err(HeaderFault::BadCrc);
        }
        let version = fields::VERSION.u16(buf);
        if version != CONTROL_VERSION {
            return Err(HeaderFault::Version { found: version });
        }
        let bits = fields::REQUIRED.u32(buf);
        if bits != 0 {
            return Err(HeaderFault::Features { bits });
        }
        let state = match fields::STATE.u8(buf) {
            1 => State::Open,
            2 => State::Closed,
            _ => return Err(HeaderFault::Field(fields::STATE.name)),
        };
        let slot = Self {
            state,
            store: StoreId(fields::STORE.array(buf)),
            epoch: fields::EPOCH.u64(buf),
            counter: fields::COUNTER.u64(buf),
            durable: Lsn(fields::DURABLE.u64(buf)),
            written: Lsn(fields::WRITTEN.u64(buf)),
            live_version: fields::LIVE_VERSION.u64(buf),
            directory_to: Lsn(fields::DIRECTORY_TO.u64(buf)),
            last_index: Lsn(fields::LAST_INDEX.u64(buf)),
            next_dense: fields::NEXT_DENSE.u64(buf),
            active: fields::ACTIVE.u32(buf),
            active_salt: fields::ACTIVE_SALT.u64(buf),
            active_epoch: fields::ACTIVE_EPOCH.u64(buf),
        };
        let rules = [
            (fields::SLOT_LEN.u16(buf) == SLOT_LEN, fields::SLOT_LEN),
            (slot.counter > 0, fields::COUNTER),
            (slot.durable <= slot.written, fields::DURABLE),
            (fields::ZERO_A.is_zero(buf) && fields::ZERO_B.is_zero(buf), fields::ZERO_A),
        ];
        let broken = rules.into_iter().find(|(holds, _)| !holds);
        broken.map_or(Ok(slot), |(_, field)| Err(HeaderFault::Field(field.name)))
    }
}

/// What the file says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Control {
    /// The slots at 0 and at 4096.
    pub(crate) slots: [Result<ControlSlot, HeaderFault>; 2],
}

impl Control {
    /// Reads both slots of the whole file, which may be shorter than it should be.
    pub(crate) fn decode(file: &[u8]) -> Self {
        let read = |index: u64, at: usize| {
            let slot = ControlSlot::decode(file.get(at..).unwrap_or_default())?;
            // A slot in the other one's place was misdirected; trusting it would let an older one win later.
            if slot.counter % 2 == index { Ok(slot) } else { Err(HeaderFault::Field(fields::COUNTER.name)) }
        };
        Self { slots: [read(0, 0), read(1, PAGE)] }
    }

    /// The whole file of a new store: both slots, so that an empty one is always damage. `slot.counter` becomes 2
    /// if it is lower.
    pub(crate) fn encode_new(slot: &ControlSlot) -> Vec<u8> {
        let mut file = vec![0; CONTROL_LEN];
        let newest = slot.counter.max(2);
        for counter in [newest - 1, newest] {
            let slot = ControlSlot { counter, ..*slot };
            let at = if counter % 2 == 1 { PAGE } else { 0 };
            if let Some(place) = file.get_mut(at..at + SECTOR) {
                place.copy_from_slice(&slot.encode());
            }
        }
        file
    }

    /// The valid slot with the higher counter.
    pub(crate) fn newest(&self) -> Option<ControlSlot> {
        self.slots.iter().filter_map(|slot| slot.ok()).max_by_key(|slot| slot.counter)
    }

    /// The fault that names a later format: then the store is refused, whatever the other slot says.
    pub(crate) fn unsupported(&self) -> Option<HeaderFault> {
        self.slots.iter().filter_map(|slot| slot.err()).find(|fault| fault.is_unsupported())
    }

    /// Slots that are damaged, with the offset of each.
    pub(crate) fn damaged(&self) -> impl Iterator<Item = (u64, HeaderFault)> + '_ {
        let at = [0, PAGE as u64];
        at.into_iter().zip(self.slots).filter_map(|(at, slot)| slot.err().map(|fault| (at, fault)))
    }
}

const SLOT_LEN: u16 = 512;
const _: () = assert!(SLOT_LEN as usize == SECTOR);

fn covered(buf: &[u8]) -> &[u8] {
    buf.get(..fields::CRC.at).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slot(counter: u64) -> ControlSlot {
        ControlSlot {
            state: State::Closed,
            store: StoreId([2; 16]),
            epoch: 3,
            counter,
            durable: Lsn::new(4, 512),
            written: Lsn::new(4, 1024),
            live_version: 5,
            directory_to: Lsn::new(3, 4096),
            last_index: Lsn::new(4, 576),
            next_dense: 12,
            active: 4,
            active_salt: 0x1234_5678_9ABC_DEF0,
            active_epoch: 2,
        }
    }

    fn file(counters: &[u64]) -> Vec<u8> {
        let mut file = vec![0; CONTROL_LEN];
        for counter in counters {
            let slot = slot(*counter);
            let at = usize::try_from(slot.offset()).unwrap();
            file[at..at + SECTOR].copy_from_slice(&slot.encode());
        }
        file
    }

    #[test]
    fn the_higher_counter_counts() {
        assert_eq!(Control::decode(&file(&[6, 7])).newest(), Some(slot(7)));
        assert_eq!(Control::decode(&file(&[8, 7])).newest(), Some(slot(8)));
        let one = Control::decode(&file(&[7]));
        assert_eq!(one.newest(), Some(slot(7)));
        assert_eq!(one.damaged().collect::<Vec<_>>(), [(0, HeaderFault::BadMagic)]);
        assert_eq!(Control::decode(&[]).newest(), None);
        assert_eq!(Control::decode(&file(&[8, 7])[..4096]).newest(), Some(slot(8)));
    }

    #[test]
    fn every_flipped_bit_of_a_slot_is_noticed() {
        let bytes = slot(9).encode();
        for bit in 0..bytes.len() * 8 {
            let mut bad = bytes;
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(ControlSlot::decode(&bad).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_slot_in_the_other_ones_place_is_refused() {
        let mut swapped = file(&[6, 7]);
        let (front, back) = swapped.split_at_mut(PAGE);
        front.swap_with_slice(back);
        assert_eq!(Control::decode(&swapped).newest(), None);
    }

    #[test]
    fn a_new_file_has_two_slots() {
        let control = Control::decode(&Control::encode_new(&slot(0)));
        assert_eq!(control.newest(), Some(slot(2)));
        assert_eq!(control.damaged().count(), 0);
    }

    #[test]
    fn later_formats_are_refused_whatever_the_other_slot_says() {
        let mut bytes = file(&[6, 7]);
        bytes[8] = 2;
        let sum = crc(&bytes[..508]);
        bytes[508..512].copy_from_slice(&sum.to_le_bytes());
        assert_eq!(Control::decode(&bytes).unsupported(), Some(HeaderFault::Version { found: 2 }));
    }
}
