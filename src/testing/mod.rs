//! What tests, fuzzing and benches share (feature `testing`): a disk and a runtime that do what a seed says.
//!
//! Nothing here is part of the stable face, and nothing in the engine knows of it.

pub mod fuzzing;
pub mod model;
pub mod oracle;
mod random;
pub mod scheduler;
pub mod seeded;
pub mod sim_disk;
pub mod simulate;
pub mod workload;

pub use model::Model;
pub use random::Random;
pub use scheduler::Scheduler;
pub use seeded::SeededRuntime;
pub use sim_disk::{DiskOp, Effect, FaultKind, FaultPlan, SimDisk};
pub use workload::{Op, Workload};
