use super::*;

#[test]
fn one_seed_twice_is_one_run() {
    for seed in 0..25 {
        let (first, second) = (run(seed), run(seed));
        assert_eq!(first.failure, None, "seed {seed}");
        assert_eq!((first.trace_hash, &first.tally), (second.trace_hash, &second.tally), "seed {seed}");
    }
}
