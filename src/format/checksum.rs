//! CRC-32/ISO-HDLC over what each checksum covers. Always: bound to position, epoch, salt or store, so that moved,
//! recycled or resurrected bytes never validate (F7). Never: a defence against an adversary who writes the files.

use super::lsn::{Binding, Lsn};
use crate::mutation::{self, Mutation};
use crc32fast::Hasher;

/// CRC of `bytes`.
pub(crate) fn crc(bytes: &[u8]) -> u32 {
    crc32fast::hash(bytes)
}

/// The one flipped bit that explains why `bytes` and the CRC stored behind them do not agree, counted from the first
/// bit of `bytes` on, the 32 bits of the CRC included; `None` if no single one does.
///
/// A CRC is linear, so a flipped bit changes it by an amount that depends on the distance to the end alone: walking
/// from the end costs one shift a bit, where trying each bit would cost a CRC each.
pub(crate) fn flipped_bit(bytes: &[u8], stored: u32) -> Option<usize> {
    const POLYNOMIAL: u32 = 0xEDB8_8320;
    let change = crc(bytes) ^ stored;
    let bits = bytes.len().checked_mul(8)?;
    if change.is_power_of_two() {
        return bits.checked_add(usize::try_from(change.trailing_zeros()).ok()?);
    }
    let mut by_this_bit = POLYNOMIAL;
    (0..bits).rev().find(|_| {
        let found = by_this_bit == change;
        let carry = if by_this_bit & 1 == 1 { POLYNOMIAL } else { 0 };
        by_this_bit = (by_this_bit >> 1) ^ carry;
        found
    })
}

/// What is XORed onto the CRC of a record, for its first byte's place and the epoch of its segment header. 24 bytes are hashed, so it may run under a lock.
pub(crate) fn record_mix(lsn: Lsn, epoch: u64, salt: u64) -> u32 {
    let (lsn, salt) = (place(lsn), salted(salt));
    let mut input = [0u8; 24];
    for (part, value) in input.as_chunks_mut::<8>().0.iter_mut().zip([lsn.0, epoch, salt]) {
        *part = value.to_le_bytes();
    }
    crc(&input)
}

/// CRC of a frame header: `front` before its CRC field, `extension` behind it (empty in version 1).
pub(crate) fn frame_header_crc(front: &[u8], extension: &[u8], binding: &Binding) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(front);
    hasher.update(extension);
    hasher.update(&salted(binding.salt).to_le_bytes());
    hasher.update(&binding.store.0);
    hasher.finalize()
}

/// CRC of a frame's table and pad.
pub(crate) fn table_crc(table: &[u8], pad: &[u8], salt: u64, lsn: Lsn) -> u32 {
    let mut hasher = Hasher::new();
    hasher.update(table);
    hasher.update(pad);
    hasher.update(&salted(salt).to_le_bytes());
    hasher.update(&place(lsn).0.to_le_bytes());
    hasher.finalize()
}

fn place(lsn: Lsn) -> Lsn {
    if mutation::is_on(Mutation::UnboundRecords) { Lsn::NONE } else { lsn }
}

fn salted(salt: u64) -> u64 {
    if mutation::is_on(Mutation::IgnoreSalt) { 0 } else { salt }
}

/// CRC over the stored CRC fields of a frame's records, fed one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct RecordsCrc(Hasher);

impl RecordsCrc {
    pub(crate) fn add(&mut self, stored: [u8; 4]) {
        self.0.update(&stored);
    }

    pub(crate) fn finish(&self) -> u32 {
        self.0.clone().finalize()
    }
}

#[cfg(test)]
mod tests {
    use super::{RecordsCrc, crc, flipped_bit, frame_header_crc, record_mix, table_crc};
    use crate::format::lsn::{Binding, Lsn, StoreId};

    #[test]
    fn it_is_crc_32_iso_hdlc() {
        assert_eq!(crc(b"123456789"), 0xCBF4_3926);
        assert_eq!(RecordsCrc::default().finish(), 0);
    }

    #[test]
    fn a_single_flipped_bit_is_found_and_two_are_not() {
        let bytes: Vec<u8> = (0..508u32).map(|n| u8::try_from(n * 73 % 251).unwrap()).collect();
        let whole = [bytes.clone(), crc(&bytes).to_le_bytes().to_vec()].concat();
        let found =
            |whole: &[u8]| flipped_bit(&whole[..508], u32::from_le_bytes(whole[508..].try_into().unwrap()));
        assert_eq!(found(&whole), None);
        for bit in 0..512 * 8 {
            let mut hurt = whole.clone();
            hurt[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(found(&hurt), Some(bit));
            hurt[bit / 16 + 100] ^= 0x10;
            assert_eq!(found(&hurt).filter(|_| hurt != whole), None, "{bit} and another");
        }
    }

    #[test]
    fn parts_are_hashed_in_the_order_of_the_spec() {
        let binding = Binding { store: StoreId([9; 16]), salt: 0x0102_0304_0506_0708, epoch: 1 };
        let mut whole = vec![1, 2, 3, 4];
        whole.extend(binding.salt.to_le_bytes());
        whole.extend([9; 16]);
        assert_eq!(frame_header_crc(&[1, 2], &[3, 4], &binding), crc(&whole));

        let lsn = Lsn::new(1, 512);
        let mut whole = vec![1, 2, 0x5A];
        whole.extend(binding.salt.to_le_bytes());
        whole.extend(lsn.0.to_le_bytes());
        assert_eq!(table_crc(&[1, 2], &[0x5A], binding.salt, lsn), crc(&whole));

        let mut whole = lsn.0.to_le_bytes().to_vec();
        whole.extend(3u64.to_le_bytes());
        whole.extend(binding.salt.to_le_bytes());
        assert_eq!(record_mix(lsn, 3, binding.salt), crc(&whole));
    }
}
