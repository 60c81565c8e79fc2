//! An exploration does not exceed its memory limit.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use grouplock_lab::{Options, Verdict, check, registry};

/// Counts the allocated memory, and its maximum.
struct Counting;

static HELD: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all calls go to the allocator of the system.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(HELD.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        // SAFETY: the caller obeys the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller obeys the same contract.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Each new ticket adds states of the code, not only of the lock. They count too.
#[test]
fn tickets_that_grow_for_ever_end_at_the_limit() {
    for (name, processes) in [("bakery", 2), ("generalized-bakery", 2), ("anderson", 3)] {
        let subject = registry::find(name).expect("it is registered");
        let mut options = Options::new(&subject, processes, 2);
        options.memory_limit = 12 << 20;
        let before = HELD.load(Relaxed);
        MOST.store(before, Relaxed);
        let outcome = check(&subject, &options).expect("the sizes are right");
        assert_eq!(outcome.verdict, Verdict::Limit, "{name}: {:?}", outcome.violation);
        let most = MOST.load(Relaxed) - before;
        assert!(most < 18 << 20, "{name} took {} KiB of {}", most >> 10, 12 << 10);
    }
}
