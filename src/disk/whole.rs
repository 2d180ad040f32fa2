//! Calls of the operating system that may be interrupted, or do less than was asked, carried on until all is done.
//!
//! The loops are here and the calls are passed in, so that a test, and the simulated disk, can cut them short
//! anywhere. Never: a call that failed for another reason is made again.

use std::io::{self, IoSlice};

/// The kernel refuses more buffers than this in one call (IOV_MAX).
const MOST_BUFFERS: usize = 1024;

/// Reads from `off` on until `buf` is full or `read` says that the file ends; how much that was.
pub(crate) fn read(
    buf: &mut [u8],
    off: u64,
    mut read: impl FnMut(&mut [u8], u64) -> io::Result<usize>,
) -> io::Result<usize> {
    let mut done = 0;
    while let Some(rest) = buf.get_mut(done..).filter(|rest| !rest.is_empty()) {
        match read(rest, position(off, done)?) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(done)
}

/// Writes the buffers one behind the other from `off` on, whatever part of them each call of `write` takes.
pub(crate) fn write(
    bufs: &[&[u8]],
    off: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> io::Result<usize>,
) -> io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> =
        bufs.iter().filter(|buf| !buf.is_empty()).map(|buf| IoSlice::new(buf)).collect();
    let mut rest = slices.as_mut_slice();
    let mut done = 0;
    while !rest.is_empty() {
        let (now, _) = rest.split_at(rest.len().min(MOST_BUFFERS));
        match write(now, position(off, done)?) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => {
                done += n;
                IoSlice::advance_slices(&mut rest, n);
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Makes a call that does all or nothing until it is not interrupted.
pub(crate) fn call<T>(mut call: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match call() {
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

fn position(off: u64, done: usize) -> io::Result<u64> {
    off.checked_add(done as u64).ok_or_else(|| io::Error::from(io::ErrorKind::FileTooLarge))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Interrupted every second time; takes at most `most` bytes otherwise.
    fn choppy(turn: &Cell<u32>, most: usize, len: usize) -> io::Result<usize> {
        turn.set(turn.get() + 1);
        if turn.get() % 2 == 1 { Err(io::ErrorKind::Interrupted.into()) } else { Ok(len.min(most)) }
    }

    #[test]
    fn short_and_interrupted_writes_go_on_where_they_stopped() {
        for most in 1..12 {
            let (mut file, turn) = (vec![0; 3], Cell::new(0));
            let put = |slices: &[IoSlice<'_>], at: u64| {
                let bytes: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
                let n = choppy(&turn, most, bytes.len())?;
                assert_eq!(at, file.len() as u64, "no gap, and nothing twice");
                file.extend_from_slice(&bytes[..n]);
                Ok(n)
            };
            write(&[b"ab", b"", b"cde", b"fghi"], 3, put).unwrap();
            assert_eq!(file, b"\0\0\0abcdefghi", "{most} bytes a call");
        }
    }

    #[test]
    fn more_buffers_than_one_call_takes_are_written() {
        let bufs = vec![&b"x"[..]; 2500];
        let (mut calls, mut count) = (0, 0);
        write(&bufs, 0, |slices, _| {
            assert!(slices.len() <= MOST_BUFFERS);
            calls += 1;
            count += slices.len();
            Ok(slices.len())
        })
        .unwrap();
        assert_eq!((calls, count), (3, 2500));
    }

    #[test]
    fn short_and_interrupted_reads_go_on_until_the_end() {
        for most in 1..12 {
            let (file, turn) = (b"0123456789", Cell::new(0));
            let get = |buf: &mut [u8], at: u64| {
                let rest = &file[usize::try_from(at).unwrap().min(10)..];
                let n = choppy(&turn, most, rest.len().min(buf.len()))?;
                buf[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            };
            let mut buf = [0; 20];
            assert_eq!(read(&mut buf, 2, get).unwrap(), 8);
            assert_eq!(&buf[..8], b"23456789");
        }
    }

    #[test]
    fn other_failures_end_it_at_once() {
        let mut calls = 0;
        let failed = write(&[b"ab"], 0, |_, _| {
            calls += 1;
            if calls == 1 { Ok(1) } else { Err(io::ErrorKind::StorageFull.into()) }
        });
        assert_eq!((failed.unwrap_err().kind(), calls), (io::ErrorKind::StorageFull, 2));
        assert_eq!(write(&[b"ab"], 0, |_, _| Ok(0)).unwrap_err().kind(), io::ErrorKind::WriteZero);
        let failed = read(&mut [0; 4], 0, |_, _| Err(io::ErrorKind::Other.into()));
        assert_eq!(failed.unwrap_err().kind(), io::ErrorKind::Other);
        assert_eq!(write(&[b"ab"], u64::MAX, |_, _| Ok(1)).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let turn = Cell::new(0);
        assert_eq!(call(|| choppy(&turn, 5, 9)).unwrap(), 5);
        assert_eq!(call::<()>(|| Err(io::ErrorKind::Other.into())).unwrap_err().kind(), io::ErrorKind::Other);
    }
}
