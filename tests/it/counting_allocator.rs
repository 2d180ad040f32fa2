//! A global allocator that counts, per thread, what is allocated and what the most was.
//!
//! Per thread, because other tests run beside; so what is measured must do its work on one thread. Existing crates
//! count per process. Shared with `fuzz/`, which includes this file.

#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The system's allocator, counted.
pub(crate) struct Counting;

thread_local! {
    // Constants without a destructor: reading them allocates nothing, also while a thread ends.
    static NOW: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn count(change: isize) {
    NOW.set(NOW.get().wrapping_add(change));
    MOST.set(MOST.get().max(NOW.get()));
}

/// A layout is never larger than `isize::MAX`.
fn signed(size: usize) -> isize {
    isize::try_from(size).unwrap_or(isize::MAX)
}

// SAFETY: every call goes to the system's allocator with the caller's own arguments, so its promises and the caller's
// duties are the system's; counting touches nothing of it and never allocates or unwinds.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(signed(size) - signed(layout.size()));
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// The most bytes that this thread had allocated at a time during `work`, beyond those before it.
pub(crate) fn most_allocated(work: impl FnOnce()) -> usize {
    let before = NOW.get();
    MOST.set(before);
    work();
    usize::try_from(MOST.get() - before).unwrap_or(0)
}
