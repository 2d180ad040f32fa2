//! What every fuzz target does around its body: it counts what is allocated (G7).

#[path = "../../tests/it/counting_allocator.rs"]
mod counting_allocator;

use sessionlog::testing::fuzzing::{Body, allocation_bound};

#[global_allocator]
static ALLOCATOR: counting_allocator::Counting = counting_allocator::Counting;

/// Runs `body` and fails when it had more allocated at a time than an input of this length may cost.
pub fn bounded(input: &[u8], body: Body) {
    let most = counting_allocator::most_allocated(|| body(input));
    let bound = allocation_bound(input.len());
    assert!(most <= bound, "{most} bytes were allocated, at most {bound} may be");
}
