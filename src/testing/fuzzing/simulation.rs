//! Operations and faults: the simulation with a script that the input spells.

use super::input::Input;
use crate::testing::sim_disk::{FaultKind, FaultPlan};
use crate::testing::simulate::{CRASHES, End, Life, Op, Script, Verb, run_script};

const MOST_OPS: usize = 80;
const MOST_LIVES: usize = 4;

/// Options u8, interleaving u16, faults, each `kind u8, rate u8` up to a kind of 0xFF; then ops, each `verb u8, actor and
/// session u8, size u8, salt u8`; a verb of 0xF0 and above ends a life.
pub fn simulation(input: &[u8]) {
    let mut input = Input::new(input);
    let options = input.u8();
    let seed = u64::from(input.u16());
    let script = Script {
        segment: 64 << 10,
        unflushed: if options & 1 == 0 { 8 << 20 } else { 24 << 10 },
        padded: options & 2 != 0,
        maps: options & 4 != 0,
        files: if options & 8 == 0 { 16 } else { 2 },
        depth: if options & 16 == 0 { 2048 } else { 1 },
        space: if options & 32 == 0 { 0 } else { 300_000 },
        crashes: CRASHES,
        lies: false,
        faults: faults(seed, &mut input),
        lives: lives(&mut input),
    };
    let outcome = run_script(seed, &script, false);
    let failure = outcome.failure.map(|failure| failure.what);
    assert!(failure.is_none(), "seed {seed}, script {script}: {}", failure.unwrap_or_default());
}

fn faults(seed: u64, input: &mut Input<'_>) -> FaultPlan {
    let mut plan = FaultPlan { seed, ..FaultPlan::none() };
    for _ in 0..3 {
        let (kind, rate) = match input.u8() {
            0xFF => break,
            kind => (usize::from(kind), u64::from(input.u8())),
        };
        if let Some(kind) = FaultKind::ALL.get(kind % FaultKind::ALL.len()) {
            // Damage strikes seldom, or nothing is left to judge.
            let most = if kind.is_damage() { 1 } else { 4 };
            plan.rates.insert(*kind, rate * most);
        }
    }
    plan
}

fn lives(input: &mut Input<'_>) -> Vec<Life> {
    let mut lives = vec![Life { ops: Vec::new(), end: End::Close }];
    for _ in 0..MOST_OPS {
        if input.is_empty() {
            break;
        }
        let verb = input.u8();
        let Some(life) = lives.last_mut() else { break };
        if verb >= 0xF0 {
            life.end = match verb % 3 {
                0 => End::Close,
                1 => End::Kill,
                _ => End::Cut,
            };
            if lives.len() == MOST_LIVES {
                break;
            }
            lives.push(Life { ops: Vec::new(), end: End::Cut });
        } else {
            life.ops.extend(op(verb, input));
        }
    }
    lives
}

fn op(verb: u8, input: &mut Input<'_>) -> Option<Op> {
    let verb = *Verb::ALL.get(usize::from(verb) % Verb::ALL.len())?;
    let (who, size, salt) = (input.u8(), u64::from(input.u8()), u64::from(input.u8()));
    let size = match verb {
        Verb::Large => 4000 + size * 150,
        Verb::Batch => 2 + size % 4,
        Verb::Idle => 1 + size % 40,
        _ => size,
    };
    Some(Op { actor: u64::from(who & 7), verb, which: u64::from(who >> 3), size, salt: salt * 4099 })
}
