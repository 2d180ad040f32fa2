//! The bytes of a file, sparse and shared: copies cost a pointer a page until one of them is written.

use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) const PAGE: u64 = 4096;
pub(super) const SECTOR: u64 = 512;
const PAGE_BYTES: usize = 4096;
const SECTOR_BYTES: usize = 512;

pub(super) type Sector = [u8; SECTOR_BYTES];

/// Pages by number; what is missing reads as zero and takes no space. `None` is a page of zeros that has space: it costs
/// no memory before other bytes are written.
#[derive(Debug, Clone, Default)]
pub(super) struct Pages(BTreeMap<u64, Option<Arc<[u8; PAGE_BYTES]>>>);

/// Cuts a range of bytes where pages begin: page number, offset in it, and length.
fn pieces(off: u64, len: usize) -> impl Iterator<Item = (u64, usize, usize)> {
    let mut at = off;
    let mut rest = len;
    std::iter::from_fn(move || {
        let inside = usize::try_from(at % PAGE).unwrap_or(0);
        let now = rest.min(PAGE_BYTES - inside);
        let piece = (at / PAGE, inside, now);
        at += now as u64;
        rest -= now;
        (now > 0).then_some(piece)
    })
}

impl Pages {
    pub(super) fn read(&self, off: u64, buf: &mut [u8]) {
        let mut rest = buf;
        for (number, inside, len) in pieces(off, rest.len()) {
            let (now, behind) = rest.split_at_mut(len);
            rest = behind;
            let page = self.0.get(&number).and_then(Option::as_ref);
            match page.and_then(|page| page.get(inside..inside + len)) {
                Some(bytes) => now.copy_from_slice(bytes),
                None => now.fill(0),
            }
        }
    }

    pub(super) fn write(&mut self, off: u64, bytes: &[u8]) {
        let mut rest = bytes;
        for (number, inside, len) in pieces(off, bytes.len()) {
            let (now, behind) = rest.split_at(len);
            rest = behind;
            if len == PAGE_BYTES && now.iter().all(|byte| *byte == 0) {
                self.0.insert(number, None);
                continue;
            }
            let page = self.0.entry(number).or_default();
            let page = Arc::make_mut(page.get_or_insert_with(|| Arc::new([0; PAGE_BYTES])));
            if let Some(to) = page.get_mut(inside..inside + len) {
                to.copy_from_slice(now);
            }
        }
    }

    pub(super) fn sector(&self, number: u64) -> Sector {
        let mut sector = [0; SECTOR_BYTES];
        self.read(number * SECTOR, &mut sector);
        sector
    }

    /// Whether the page is known to be all zero.
    pub(super) fn is_zero(&self, page: u64) -> bool {
        self.0.get(&page).is_none_or(Option::is_none)
    }

    /// Gives every page of the range space.
    pub(super) fn reserve(&mut self, off: u64, len: u64) {
        for number in page_range(off, len) {
            self.0.entry(number).or_default();
        }
    }

    /// Gives every page that `other` has space.
    pub(super) fn reserve_like(&mut self, other: &Self) {
        for number in other.0.keys() {
            self.0.entry(*number).or_default();
        }
    }

    /// Forgets everything from byte `len` on.
    pub(super) fn cut(&mut self, len: u64) {
        self.0.split_off(&len.div_ceil(PAGE));
        let inside = usize::try_from(len % PAGE).unwrap_or(0);
        let page = self.0.get_mut(&(len / PAGE)).and_then(Option::as_mut);
        if let Some(page) = page.filter(|_| inside > 0)
            && let Some(tail) = Arc::make_mut(page).get_mut(inside..)
        {
            tail.fill(0);
        }
    }

    /// How many pages of the range have no space yet.
    pub(super) fn missing(&self, off: u64, len: u64) -> u64 {
        let range = page_range(off, len);
        let all = range.end - range.start;
        all - self.0.range(range).count() as u64
    }

    /// How many bytes from `off` on can be written when `pages` more pages may get space.
    pub(super) fn fitting(&self, off: u64, len: u64, pages: u64) -> u64 {
        let mut left = pages;
        for number in page_range(off, len) {
            if self.0.contains_key(&number) {
                continue;
            }
            if left == 0 {
                return (number * PAGE).saturating_sub(off);
            }
            left -= 1;
        }
        len
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len() as u64
    }
}

fn page_range(off: u64, len: u64) -> std::ops::Range<u64> {
    if len == 0 { 0..0 } else { off / PAGE..(off + len).div_ceil(PAGE) }
}

/// A copy of a sector's bytes; those that are all zero are one.
pub(super) fn shared_sector(bytes: Sector) -> Arc<Sector> {
    thread_local! {
        static ZERO: Arc<Sector> = Arc::new([0; SECTOR_BYTES]);
    }
    if bytes.iter().all(|byte| *byte == 0) { ZERO.with(Arc::clone) } else { Arc::new(bytes) }
}
