//! Directory runs.

use super::forge::{self, BINDING, RUN};
use super::index::STRETCH;
use super::input::Input;
use crate::format::directory::{RunFile, RunKey, RunRange, choose_chain, id_hash, layout::header, merge};
use crate::format::lsn::{Lsn, StoreId};

/// Whether to mend it u8, the bytes of a run.
pub fn directory_open(input: &[u8]) {
    let mut input = Input::new(input);
    let mend = input.u8() & 1 != 0;
    let mut bytes = input.rest().to_vec();
    let key = if mend {
        let longest = bytes.len().saturating_mul(STRETCH).saturating_add(512);
        forge::block_file(&mut bytes, &RUN, longest);
        key_of(&bytes)
    } else {
        RunKey { store: BINDING.store, from: Lsn::NONE, to: Lsn::new(forge::SEGMENT, 4096) }
    };
    let Ok(run) = RunFile::open(bytes.as_slice(), &key) else { return };
    look_through(&run);
}

/// The key that the file itself names, so that it is taken.
fn key_of(bytes: &[u8]) -> RunKey {
    RunKey {
        store: StoreId(header::STORE.array(bytes)),
        from: Lsn(header::FROM.u64(bytes)),
        to: Lsn(header::TO.u64(bytes)),
    }
}

/// Asks everything that a run can be asked. After a good `verify` every answer must come, and a merge of the run alone
/// says the same.
fn look_through(run: &RunFile<&[u8]>) {
    let good = run.verify().is_ok();
    for entry in run.entries() {
        let Ok(entry) = entry else {
            assert!(!good, "a verified run has a bad entry");
            continue;
        };
        let by_id = run.lookup(&id_hash(&entry.id));
        assert!(!good || matches!(by_id, Ok(found) if found.contains(&entry.dense)), "found by its id");
        let by_dense = run.entry(entry.dense);
        assert!(!good || matches!(by_dense, Ok(Some(found)) if found == entry), "found by its dense id");
        let _ = run.children(entry.dense);
    }
    let key = run.info().key;
    let _ = choose_chain([RunRange { from: key.from, to: key.to }]);
    let Ok(merged) = merge(&[run], |_| true) else {
        assert!(!good, "a verified run merges");
        return;
    };
    let again = RunFile::open(merged.as_slice(), &key).expect("what a merge writes opens");
    assert!(!good || again.verify().is_ok(), "what is merged of a verified run is sound");
}
