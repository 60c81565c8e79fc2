//! How often a thread asks for memory.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

/// The system's allocator, which counts by thread. A program that wants to count declares it as its global allocator.
#[derive(Debug)]
pub struct Counting;

// SAFETY: every call goes to the system's allocator unchanged, and the count neither allocates nor unwinds: it is constant at first
// and has no destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: the caller's promise is the one that is asked for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as above; the memory is the system allocator's.
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(memory, layout, size) }
    }
}

/// What `action` gives, and how often this thread asked for memory meanwhile.
pub fn counted<R>(action: impl FnOnce() -> R) -> (R, u64) {
    let before = COUNT.get();
    let result = action();
    (result, COUNT.get() - before)
}

/// Whether [`Counting`] is this program's allocator.
pub fn are_counted() -> bool {
    counted(|| core::hint::black_box(Box::new(0_u64))).1 > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_request_for_memory_is_counted() {
        assert!(are_counted());
        let (mut list, asked) = counted(|| Vec::<u64>::with_capacity(1));
        assert_eq!(asked, 1);
        assert_eq!(counted(|| list.push(1)).1, 0);
        assert_eq!(counted(|| list.reserve(100)).1, 1);
    }
}
