//! `demo`: the main job in one command. A child records a bundled session as an agent would, is killed in the
//! middle of a turn, and the store is opened again.
//!
//! What always holds: every figure comes from the library or from comparing bytes; whatever does not hold is said,
//! and makes the exit code 1.

mod child;
mod crash;
mod look;
mod loss;
mod report;
mod source;

use std::fs;
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::failure::{Ended, Failure, Outcome};
use crate::output::Output;
use crate::stores::Stores;

pub(crate) use child::child;

/// Runs it in `dir`, or in a temporary directory that is removed again.
pub(crate) fn run(stores: &Stores, dir: Option<PathBuf>, out: &mut Output) -> Ended {
    let keep = dir.is_some();
    let place = Place::new(dir)?;
    let crash = crash::record_and_kill(&place.store, stores.allow_network_fs())?;
    let seen = look::look(&stores.at(place.store.clone()), &crash, &place.files)?;
    if out.json {
        report::json(&place.store, &crash, &seen, out)?;
    } else {
        report::words(keep.then_some(place.store.as_path()), &crash, &seen, out)?;
    }
    Ok(Outcome::findings_if(seen.claims.iter().any(|claim| !claim.holds)))
}

/// Where the demo happens.
struct Place {
    store: PathBuf,
    /// For exported files; removed at the end.
    files: PathBuf,
    temporary_store: bool,
}

impl Place {
    fn new(dir: Option<PathBuf>) -> Result<Self, Failure> {
        let temporary =
            |what: &str| std::env::temp_dir().join(format!("sessionlog-{what}-{}", Uuid::new_v4().simple()));
        let temporary_store = dir.is_none();
        let store = dir.unwrap_or_else(|| temporary("demo"));
        if is_used(&store)? {
            return Err(Failure::Words(format!("{} is not empty; choose a new directory", store.display())));
        }
        Ok(Self { store, files: temporary("export"), temporary_store })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Nothing of it is needed; what cannot be removed is left in the temporary directory.
        let _ = fs::remove_dir_all(&self.files);
        if self.temporary_store {
            let _ = fs::remove_dir_all(&self.store);
        }
    }
}

fn is_used(dir: &Path) -> Result<bool, Failure> {
    match fs::read_dir(dir) {
        Ok(mut entries) => Ok(entries.next().is_some()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(Failure::Words(format!("{}: {error}", dir.display()))),
    }
}
