//! Counts how often a thread allocates memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, with a count for each thread.
#[derive(Debug)]
pub(crate) struct Counting;

// SAFETY: every call goes to the system's allocator unchanged. The count neither allocates nor
// unwinds: its first value is constant, and it has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller promises the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above; the system's allocator made the memory.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// The result of `action`, and how often this thread allocated meanwhile.
pub(crate) fn counted<R>(action: impl FnOnce() -> R) -> (R, u64) {
    let before = COUNT.get();
    let result = action();
    (result, COUNT.get() - before)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_allocation_is_counted() {
        let (mut list, allocations) = counted(|| Vec::<u64>::with_capacity(1));
        assert_eq!(allocations, 1);
        assert_eq!(counted(|| list.push(1)).1, 0);
        assert_eq!(counted(|| list.reserve(100)).1, 1);
    }
}
