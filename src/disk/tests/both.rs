//! The real disk and the simulated one answer alike: random calls on both, and every answer compared.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::disk;
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::testing::{Random, SimDisk};
use crate::{Error, Result};

const NAMES: [&str; 6] = ["a", "b", "d/a", "d/b", "d", "e/a"];

/// What a caller sees of an error, but for the root.
fn answer<T: std::fmt::Debug>(result: Result<T>) -> String {
    match result {
        Ok(value) => format!("{value:?}"),
        Err(e) => format!("{:?} {:?}", e.kind(), Error::io_kind(&e)),
    }
}

struct Pair {
    disks: [Arc<dyn Disk>; 2],
    open: BTreeMap<&'static str, [Arc<dyn DiskFile>; 2]>,
}

impl Pair {
    fn both<T: std::fmt::Debug>(&self, what: &str, call: impl Fn(&dyn Disk) -> Result<T>) {
        let [real, sim] = &self.disks;
        assert_eq!(answer(call(real.as_ref())), answer(call(sim.as_ref())), "{what}");
    }

    fn keep(&mut self, name: &'static str, open: impl Fn(&dyn Disk) -> Result<Arc<dyn DiskFile>>) {
        let [real, sim] = self.disks.each_ref().map(|disk| open(disk.as_ref()));
        match (real, sim) {
            (Ok(real), Ok(sim)) => drop(self.open.insert(name, [real, sim])),
            (Err(real), Err(sim)) => {
                assert_eq!(answer::<()>(Err(real)), answer::<()>(Err(sim)), "{name}");
            }
            (real, sim) => panic!("{name}: {real:?} but {sim:?}"),
        }
    }

    fn files<T: std::fmt::Debug>(&self, name: &str, call: impl Fn(&dyn DiskFile) -> Result<T>) {
        if let Some([real, sim]) = self.open.get(name) {
            assert_eq!(answer(call(real.as_ref())), answer(call(sim.as_ref())), "{name}");
        }
    }

    fn call(&mut self, random: &mut Random) {
        let name = *random.pick(&NAMES).unwrap();
        let other = *random.pick(&NAMES).unwrap();
        let (off, len) = (random.below(9000), random.index(6000));
        match random.below(16) {
            0 | 1 => self.keep(name, |disk| disk.create_excl(name)),
            2 if name != "d" => self.keep(name, |disk| disk.open(name, OpenMode::ReadWrite)),
            3 if name != "d" => self.keep(name, |disk| disk.open(name, OpenMode::Read)),
            4 if name != "d" && other != "d" => self.both("rename", |disk| disk.rename(name, other)),
            5 if name != "d" => self.both("unlink", |disk| disk.unlink(name)),
            6 => self.both("list", |disk| disk.list("")),
            7 => self.both("list", |disk| disk.list("d")),
            8 => self.both("exists", |disk| disk.exists(name)),
            9 => self.both("sync", |disk| disk.sync_dir("d")),
            10 => self.files(name, |file| file.set_len(off).map_err(|_| closed())),
            11 => self.files(name, |file| file.allocate(off, len as u64 + 1).map_err(|_| closed())),
            12 | 13 => {
                let mut bytes = vec![0; len];
                random.fill(&mut bytes);
                self.files(name, |file| file.write_at(&[&bytes, b"end"], off).map_err(|_| closed()));
            }
            _ => self.files(name, |file| {
                let mut buf = vec![0; len];
                let got = file.read_at(&mut buf, off)?;
                Ok((got, buf, file.len()?))
            }),
        }
    }
}

/// Writing through a handle for reading: the two differ in the errno alone.
fn closed() -> Error {
    Error::new(crate::ErrorKind::ReadOnly, "not open for writing")
}

#[test]
fn both_disks_answer_alike() {
    for seed in 0..60 {
        let (_dir, real) = disk();
        let mut pair = Pair { disks: [Arc::new(real), Arc::new(SimDisk::new())], open: BTreeMap::new() };
        pair.both("create directory", |disk| disk.create_dir("d"));
        let mut random = Random::new(seed);
        for _ in 0..150 {
            pair.call(&mut random);
        }
    }
}
