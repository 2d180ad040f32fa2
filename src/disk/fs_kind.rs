//! What kind of file system a directory is on (D5).
//!
//! Locks and syncs mean what the engine needs only on local file systems. Network file systems and those that run
//! through a user-space server (FUSE, 9p, shared folders of virtual machines) may keep locks to one machine, or
//! acknowledge syncs early.

use std::fmt;
use std::io;
use std::path::Path;

/// The kind of file system under a store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FsKind {
    /// On this machine's own disks or memory.
    Local,
    /// Shared over a network or through a user-space server, by its name. A writer needs an override.
    Network(String),
    /// Not one that this build knows.
    Unknown,
}

impl fmt::Display for FsKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Local => f.write_str("local"),
            Self::Network(name) => f.write_str(name),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// The kind of file system that `path` is on.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn of(path: &Path) -> io::Result<FsKind> {
    let raw = nix::sys::statfs::statfs(path)?.filesystem_type().0;
    // The type of the field has 32 or 64 bits and a sign on some targets; the numbers are 32 bits wide everywhere.
    let low = raw.to_le_bytes().first_chunk::<4>().copied().unwrap_or_default();
    Ok(of_magic(u32::from_le_bytes(low)))
}

/// The kind of file system that `path` is on.
#[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd"))]
pub(super) fn of(path: &Path) -> io::Result<FsKind> {
    let stat = nix::sys::statfs::statfs(path)?;
    Ok(of_name(stat.filesystem_type_name()))
}

/// The kind of file system that `path` is on: this platform is not asked.
#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_os = "macos",
    target_os = "ios",
    target_os = "freebsd"
)))]
pub(super) fn of(_path: &Path) -> io::Result<FsKind> {
    Ok(FsKind::Unknown)
}

/// By the number that Linux gives, see statfs(2) and the kernel's sources.
#[cfg(any(target_os = "linux", target_os = "android", test))]
fn of_magic(magic: u32) -> FsKind {
    let network = match magic {
        0x0000_6969 => "nfs",
        0x0000_517B => "smb",
        0xFF53_4D42 => "cifs",
        0xFE53_4D42 => "smb2",
        0x0000_564C => "ncp",
        0x7375_7245 => "coda",
        0x5346_414F | 0x6B41_4653 => "afs",
        0x0102_1997 => "9p",
        0x6573_5546 => "fuse",
        0x00C3_6400 => "ceph",
        0x4750_4653 => "gpfs",
        0x0BD0_0BD0 => "lustre",
        0x786F_4256 => "vboxsf",
        0xBACB_ACBC => "vmhgfs",
        0x7C7C_6673 => "prl_fs",
        0x7461_636F => "ocfs2",
        0x0116_1970 => "gfs2",
        0x2003_0528 => "orangefs",
        0x1983_0326 => "beegfs",
        0xAAD7_AAEA => "panfs",
        0x6163_6673 => "acfs",
        0xA501_FCF5 => "vxfs",
        0xBEEF_DEAD => "snfs",
        0x0131_11A8 => "ibrix",
        _ => "",
    };
    if !network.is_empty() {
        return FsKind::Network(network.to_owned());
    }
    match magic {
        // ext2-4, xfs, btrfs, tmpfs, ramfs, f2fs, zfs, bcachefs, jfs, reiserfs, nilfs, ubifs
        0xEF53 | 0x5846_5342 | 0x9123_683E | 0x0102_1994 | 0x8584_58F6 | 0xF2F5_2010 | 0x2FC1_2FC1
        | 0xCA45_1A4E | 0x3153_464A | 0x5265_4973 | 0x3434 | 0x2405_1905
        // overlayfs, ecryptfs, ntfs3, exfat, fat, hfs+, udf, iso9660, squashfs, erofs
        | 0x794C_7630 | 0xF15F | 0x7366_746E | 0x2011_BAB0 | 0x4D44 | 0x482B | 0x1501_3346 | 0x9660
        | 0x7371_7368 | 0xE0F5_E1E2 => FsKind::Local,
        _ => FsKind::Unknown,
    }
}

/// By the name that macOS and the BSDs give.
#[cfg(any(target_os = "macos", target_os = "ios", target_os = "freebsd", test))]
fn of_name(name: &str) -> FsKind {
    let lower = name.to_ascii_lowercase();
    match lower.as_str() {
        "apfs" | "hfs" | "ufs" | "zfs" | "tmpfs" | "msdos" | "exfat" | "udf" | "cd9660" | "ntfs" => {
            FsKind::Local
        }
        "nfs" | "smbfs" | "afpfs" | "webdav" | "ftp" | "acfs" | "lifs" | "p9fs" | "virtiofs" => {
            FsKind::Network(lower)
        }
        fuse if fuse.contains("fuse") => FsKind::Network(lower),
        _ => FsKind::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::{FsKind, of_magic, of_name};

    #[test]
    fn known_numbers_have_their_kind() {
        for (magic, name) in
            [(0x6969, "nfs"), (0xFF53_4D42, "cifs"), (0x6573_5546, "fuse"), (0x0102_1997, "9p")]
        {
            assert_eq!(of_magic(magic), FsKind::Network(name.to_owned()));
        }
        assert_eq!(of_magic(0xEF53), FsKind::Local);
        assert_eq!(of_magic(0x1234_5678), FsKind::Unknown);
    }

    #[test]
    fn known_names_have_their_kind() {
        assert_eq!(of_name("apfs"), FsKind::Local);
        assert_eq!(of_name("smbfs"), FsKind::Network("smbfs".to_owned()));
        assert_eq!(of_name("macFUSE"), FsKind::Network("macfuse".to_owned()));
        assert_eq!(of_name("strangefs"), FsKind::Unknown);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn the_kernel_is_asked() {
        use super::of;

        // /proc is never where a store lives, so it stands for the unknown; memory is local.
        assert_eq!(of("/proc".as_ref()).unwrap(), FsKind::Unknown);
        if std::path::Path::new("/dev/shm").is_dir() {
            assert_eq!(of("/dev/shm".as_ref()).unwrap(), FsKind::Local);
        }
        assert_eq!(of("/nonexistent/there".as_ref()).unwrap_err().kind(), std::io::ErrorKind::NotFound);
    }
}
