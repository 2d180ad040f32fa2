//! What a simulation does, as data and as text: options, faults, and what each actor does in each life of the store.
//!
//! The seed gives the script; beside it the seed only decides who goes on when, so a script can be made smaller and run
//! again with the same seed.

use std::fmt;
use std::str::FromStr;

use crate::testing::sim_disk::{FaultKind, FaultPlan};
use crate::testing::{Random, random};
use crate::{Error, ErrorKind, Result};

macro_rules! verbs {
    ($($(#[$doc:meta])* $name:ident $text:literal $weight:literal,)*) => {
        /// What an actor can do.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Verb { $($(#[$doc])* $name,)* }

        impl Verb {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// How scripts spell it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// How often it comes, among the sum of all.
            fn weight(self) -> u64 {
                match self { $(Self::$name => $weight,)* }
            }
        }
    };
}

verbs! {
    /// A new session.
    Create "create" 6,
    /// The next event of some session; `size` letters.
    Append "append" 26,
    /// An event too large for what is left of a segment, often.
    Large "large" 5,
    /// Several events at once; `size` of them.
    Batch "batch" 10,
    /// An append that expects a seq: the right one, or one that is off by a little.
    Expect "expect" 6,
    /// A seq is read, others may go on, and an append expects it.
    Race "race" 4,
    /// A compaction of a range of the surface.
    Replace "replace" 6,
    /// A flush of one session.
    Flush "flush" 14,
    /// A flush of the store.
    FlushAll "flush-all" 4,
    /// A flush by a ticket that is waited for.
    Ticket "ticket" 4,
    /// What is written and not durable: a flush to the page cache.
    Write "write" 2,
    /// A fork, closing the turn that is open at the cut.
    Fork "fork" 4,
    /// A deletion.
    Delete "delete" 2,
    /// A session is detached; whoever wants it next resumes it.
    Detach "detach" 4,
    /// Time passes.
    Idle "idle" 5,
    /// All events of a session are read, with surface and messages.
    Look "look" 5,
    /// The list of sessions and their figures.
    List "list" 2,
    /// A reader in another process takes in what is new and looks at everything.
    Follow "follow" 3,
    /// A session as lines for a file.
    Export "export" 2,
    /// A copy of the live store, opened.
    Backup "backup" 1,
    /// The wall clock jumps back.
    Clock "clock" 1,
    /// The store is closed while others use it.
    Close "close" 1,
    /// The process is killed.
    Kill "kill" 1,
}

/// One thing that an actor does. What it needs beyond, it draws from `salt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Op {
    /// Who.
    pub actor: u64,
    /// What.
    pub verb: Verb,
    /// Which session, counted among those that there are.
    pub which: u64,
    /// How long, how many or how far.
    pub size: u64,
    /// For everything else.
    pub salt: u64,
}

/// How a life of the store ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// It is closed.
    Close,
    /// Its process is killed.
    Kill,
    /// The power goes.
    Cut,
}

impl End {
    const ALL: [(Self, &'static str); 3] = [(Self::Close, "close"), (Self::Kill, "kill"), (Self::Cut, "cut")];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(end, _)| *end == self).map_or("", |(_, name)| name)
    }
}

/// From an opening of the store to the end of its process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Life {
    /// In the order of each actor; actors interleave as the seed says.
    pub ops: Vec<Op>,
    /// How it ends.
    pub end: End,
}

/// See the module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Script {
    /// The capacity of segments in bytes.
    pub segment: u64,
    /// The most unflushed bytes.
    pub unflushed: usize,
    /// Whether frames end at page borders.
    pub padded: bool,
    /// Whether index files are mapped.
    pub maps: bool,
    /// How many segment files are open at a time.
    pub files: usize,
    /// How many sessions a fork may read through.
    pub depth: usize,
    /// Bytes of free space; 0 for no limit.
    pub space: u64,
    /// Of 10,000 disk calls, so many are places where the power is cut, to be judged.
    pub crashes: u64,
    /// Damage is judged as if there was none, which must be found: to see the simulation fail.
    pub lies: bool,
    /// What goes wrong.
    pub faults: FaultPlan,
    /// The lives, one after the other.
    pub lives: Vec<Life>,
}

/// Of how many disk calls one is the place of a crash, unless something else is asked for.
pub const CRASHES: u64 = 2000;

impl Script {
    /// The script of a seed.
    #[must_use]
    pub fn of_seed(seed: u64) -> Self {
        let mut random = Random::new(random::mix(seed ^ 0x5C21_9700));
        let actors = 1 + random.below(8);
        let lives = 1 + random.below(4);
        let mut script = Self {
            segment: 64 << random.below(2) << 10,
            unflushed: *random.pick(&[8 << 20, 8 << 20, 24 << 10]).unwrap_or(&(8 << 20)),
            padded: random.chance(1, 4),
            maps: random.chance(1, 2),
            files: *random.pick(&[2, 16]).unwrap_or(&16),
            depth: *random.pick(&[1, 2, 2048]).unwrap_or(&2048),
            space: if random.chance(1, 12) { 200_000 + random.below(1 << 19) } else { 0 },
            crashes: CRASHES,
            lies: false,
            faults: faults(&mut random),
            lives: Vec::new(),
        };
        let total: u64 = Verb::ALL.iter().map(|verb| verb.weight()).sum();
        for _ in 0..lives {
            let count = 4 + random.below(30);
            let ops = (0..count).map(|_| op(&mut random, actors, total)).collect();
            let end =
                random.pick(&[End::Close, End::Kill, End::Cut, End::Cut]).copied().unwrap_or(End::Close);
            script.lives.push(Life { ops, end });
        }
        script
    }

    /// How many ops there are.
    #[must_use]
    pub fn ops(&self) -> usize {
        self.lives.iter().map(|life| life.ops.len()).sum()
    }
}

/// A third of the runs have no faults, a third such that every call above tells, a third silent damage.
fn faults(random: &mut Random) -> FaultPlan {
    let seed = random.below(1 << 32);
    let damages = random.chance(1, 2);
    if random.chance(1, 3) {
        return FaultPlan::none();
    }
    let kinds: Vec<FaultKind> =
        FaultKind::ALL.into_iter().filter(|kind| damages || !kind.is_damage()).collect();
    FaultPlan::of_seed(seed, &kinds)
}

fn op(random: &mut Random, actors: u64, total: u64) -> Op {
    let mut place = random.below(total);
    let weighed = Verb::ALL.iter().find(|verb| {
        let here = place < verb.weight();
        place = place.wrapping_sub(verb.weight());
        here
    });
    let verb = weighed.copied().unwrap_or(Verb::Append);
    let size = match verb {
        Verb::Large => 4000 + random.below(40_000),
        Verb::Batch => 2 + random.below(4),
        Verb::Idle => 1 + random.below(40),
        Verb::Append if random.chance(1, 8) => random.below(3000),
        _ => random.below(60),
    };
    Op { actor: random.below(actors), verb, which: random.below(64), size, salt: random.below(1 << 20) }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { actor, verb, which, size, salt } = self;
        write!(f, "{actor}:{}:{which}:{size}:{salt}", verb.name())
    }
}

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { segment, unflushed, padded, maps, files, depth, space, crashes, lies, faults, lives } =
            self;
        write!(
            f,
            "segment={segment} unflushed={unflushed} padded={padded} maps={maps} files={files} depth={depth}"
        )?;
        write!(f, " space={space} crashes={crashes} faults={faults}")?;
        if *lies {
            f.write_str(" lies=true")?;
        }
        for life in lives {
            write!(f, " life={}", life.end.name())?;
            for op in &life.ops {
                write!(f, " {op}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Script {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut script = Self {
            segment: 64 << 10,
            unflushed: 8 << 20,
            padded: false,
            maps: true,
            files: 16,
            depth: 2048,
            space: 0,
            crashes: CRASHES,
            lies: false,
            faults: FaultPlan::none(),
            lives: Vec::new(),
        };
        for word in text.split_whitespace() {
            let bad = || Error::new(ErrorKind::InvalidArgument, format!("{word:?} has no place in a script"));
            match word.split_once('=') {
                Some((name, value)) => script.set(name, value).ok_or_else(bad)?,
                None => {
                    let op = word.parse().ok().ok_or_else(bad)?;
                    script.lives.last_mut().ok_or_else(bad)?.ops.push(op);
                }
            }
        }
        Ok(script)
    }
}

impl Script {
    fn set(&mut self, name: &str, value: &str) -> Option<()> {
        match name {
            "segment" => self.segment = value.parse().ok()?,
            "unflushed" => self.unflushed = value.parse().ok()?,
            "padded" => self.padded = value.parse().ok()?,
            "maps" => self.maps = value.parse().ok()?,
            "files" => self.files = value.parse().ok()?,
            "depth" => self.depth = value.parse().ok()?,
            "space" => self.space = value.parse().ok()?,
            "crashes" => self.crashes = value.parse().ok()?,
            "lies" => self.lies = value.parse().ok()?,
            "faults" => self.faults = value.parse().ok()?,
            "life" => {
                let (end, _) = End::ALL.into_iter().find(|(_, known)| *known == value)?;
                self.lives.push(Life { ops: Vec::new(), end });
            }
            _ => return None,
        }
        Some(())
    }
}

impl FromStr for Op {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parts: Vec<&str> = text.split(':').collect();
        let op = || {
            let &[actor, verb, which, size, salt] = parts.as_slice() else { return None };
            let verb = *Verb::ALL.iter().find(|known| known.name() == verb)?;
            let number = |text: &str| text.parse().ok();
            Some(Self {
                actor: number(actor)?,
                verb,
                which: number(which)?,
                size: number(size)?,
                salt: number(salt)?,
            })
        };
        op().ok_or_else(|| Error::new(ErrorKind::InvalidArgument, format!("{text:?} is no op of a script")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_are_text_and_back() {
        for seed in 0..300 {
            let script = Script::of_seed(seed);
            assert_eq!(script.to_string().parse::<Script>().unwrap(), script);
        }
        for wrong in ["0:append:1:1:1", "life=x", "life=cut 0:append:1:1", "no=3", "life=cut 0:no:1:1:1"] {
            assert!(wrong.parse::<Script>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn seeds_give_every_verb_fault_and_end() {
        let all: String = (0..400).map(|seed| Script::of_seed(seed).to_string()).collect();
        for verb in Verb::ALL {
            assert!(all.contains(&format!(":{}:", verb.name())), "{}", verb.name());
        }
        for kind in FaultKind::ALL {
            assert!(all.contains(kind.name()), "{kind}");
        }
        assert!(End::ALL.iter().all(|(_, name)| all.contains(&format!("life={name}"))));
    }
}
