//! The directory: what is known of every session, in immutable sorted runs (D2).
//!
//! A [`RunFile`] holds each session that was touched in a range of the log, as it was at the range's end. The runs whose
//! ranges join from the log's beginning are a chain ([`choose_chain`]); the newest run that has a session wins. What
//! lies behind the chain is replayed. Runs are merged ([`merge`]) into larger ones; a run never decides truth.

mod build;
mod chain;
mod entry;
pub(crate) mod layout;
mod run;
#[cfg(test)]
pub(crate) mod tests;

use sha2::{Digest, Sha256};

use crate::format::lsn::{Lsn, StoreId};

#[cfg(test)]
pub(crate) use build::RunBuilder;
pub(crate) use build::{merge, write_run};
pub(crate) use chain::{RunRange, choose_chain};
pub(crate) use entry::{DirEntry, ForkRef, entry_flag};
pub(crate) use run::RunFile;

/// Magic of a directory run.
pub(crate) const RUN_MAGIC: [u8; 8] = *b"\xFFSLDIR\r\n";

/// The first 16 bytes of the SHA-256 of a session's id.
pub(crate) type IdHash = [u8; 16];

/// Hashes a session's id as [`RunFile::lookup`] takes it.
pub(crate) fn id_hash(id: &str) -> IdHash {
    let digest: [u8; 32] = Sha256::digest(id.as_bytes()).into();
    let [hash, _] = digest.as_chunks::<16>().0 else { return [0; 16] };
    *hash
}

/// The store and the range of the log, behind `from` up to `to`, that a run was made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunKey {
    pub(crate) store: StoreId,
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}
