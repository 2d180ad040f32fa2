//! Locks of the open file description, on Linux.
//!
//! They belong to the handle and not to the process, unlike POSIX locks, which any close of any descriptor of the file
//! would drop; and they can be asked about without taking one.

use std::fs::File;
use std::io;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Whether a query can be what makes a writer's attempt fail.
pub(super) const QUERY_INTERFERES: bool = false;

/// The whole file, with a lock of the kind `kind`.
#[allow(clippy::cast_possible_truncation, reason = "the constants are small numbers of a wider type")]
fn whole(kind: libc::c_int) -> libc::flock {
    libc::flock { l_type: kind as _, l_whence: libc::SEEK_SET as _, l_start: 0, l_len: 0, l_pid: 0 }
}

fn set(file: &File, kind: libc::c_int) -> io::Result<bool> {
    loop {
        match fcntl(file, FcntlArg::F_OFD_SETLK(&whole(kind))) {
            Ok(_) => return Ok(true),
            Err(Errno::EAGAIN | Errno::EACCES) => return Ok(false),
            Err(Errno::EINTR) => {}
            Err(e) => return Err(e.into()),
        }
    }
}

/// Whether it was free, and is ours now.
pub(super) fn take(file: &File) -> io::Result<bool> {
    set(file, libc::F_WRLCK)
}

pub(super) fn release(file: &File) -> io::Result<()> {
    set(file, libc::F_UNLCK).map(|_| ())
}

/// Whether another handle has it.
pub(super) fn is_held(file: &File) -> io::Result<bool> {
    let mut found = whole(libc::F_WRLCK);
    fcntl(file, FcntlArg::F_OFD_GETLK(&mut found))?;
    Ok(libc::c_int::from(found.l_type) != libc::F_UNLCK)
}
