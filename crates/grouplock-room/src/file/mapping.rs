//! The file of a room in memory.
//!
//! Other processes write to this memory at any time, and one of them may be faulty or hostile. So
//! all accesses are atomic, every offset is checked, and readers must check every value.

use std::io;
use std::num::NonZeroUsize;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use crate::kill_points::step;

/// The mapped file.
pub(super) struct Mapping {
    base: NonNull<u8>,
    length: usize,
}

// SAFETY: the memory is only reached through atomics, and unmapped by the last owner.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `length` bytes. With `look_only`, writes stay private and the file need not
    /// be open for writing. The writes of other processes are still visible.
    pub(super) fn new(file: impl AsFd, length: usize, look_only: bool) -> io::Result<Self> {
        let Some(size) = NonZeroUsize::new(length) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        let kind = if look_only { MapFlags::MAP_PRIVATE } else { MapFlags::MAP_SHARED };
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in
        // use.
        let base = unsafe { mmap(None, size, access, kind, file, 0) }?;
        Ok(Mapping { base: base.cast(), length })
    }

    /// A word of four bytes.
    ///
    /// # Panics
    /// If it is outside the mapping. Offsets come from checked slots, so that cannot happen.
    #[inline]
    pub(super) fn half(&self, offset: usize) -> Half<'_> {
        assert!(offset.is_multiple_of(4) && offset + 4 <= self.length);
        // SAFETY: within the mapping, by the assertion.
        let pointer = unsafe { self.base.add(offset) };
        // SAFETY: the mapping is aligned to pages and the offset to four bytes; it lives as long as
        // `self`; every access to it is atomic.
        Half(unsafe { AtomicU32::from_ptr(pointer.as_ptr().cast()) })
    }

    /// A word of eight bytes.
    ///
    /// # Panics
    /// As [`half`](Mapping::half).
    #[inline]
    pub(super) fn word(&self, offset: usize) -> Word<'_> {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.length);
        // SAFETY: within the mapping, by the assertion.
        let pointer = unsafe { self.base.add(offset) };
        // SAFETY: the mapping is aligned to pages and the offset to eight bytes; it lives as long
        // as `self`; every access to it is atomic.
        Word(unsafe { AtomicU64::from_ptr(pointer.as_ptr().cast()) })
    }

    /// Writes a name: its length, then its bytes.
    pub(super) fn set_text(&self, offset: usize, text: &[u8]) {
        self.word(offset).set(text.len() as u64);
        for (at, chunk) in text.chunks(8).enumerate() {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            self.word(offset + 8 + 8 * at).set(u64::from_ne_bytes(bytes));
        }
    }

    /// Reads a name of at most `max` bytes; `None` if its length is larger.
    pub(super) fn text(&self, offset: usize, max: usize) -> Option<Vec<u8>> {
        let length = self.text_length(offset, max)?;
        let mut text = Vec::with_capacity(length.next_multiple_of(8));
        for at in (0..length).step_by(8) {
            text.extend(self.word(offset + 8 + at).get().to_ne_bytes());
        }
        text.truncate(length);
        Some(text)
    }

    fn text_length(&self, offset: usize, max: usize) -> Option<usize> {
        usize::try_from(self.word(offset).get()).ok().filter(|length| *length <= max)
    }

    /// Whether two names are equal; `None` if a length is larger than `max`.
    pub(super) fn same_text(&self, one: usize, other: usize, max: usize) -> Option<bool> {
        let length = self.text_length(one, max)?;
        if length != self.text_length(other, max)? {
            return Some(false);
        }
        let same = |at| self.word(one + 8 + at).get() == self.word(other + 8 + at).get();
        Some((0..length).step_by(8).all(same))
    }

    /// Copies a name. If its length is larger than `max`, it copies nothing and returns `false`.
    pub(super) fn copy_text(&self, from: usize, to: usize, max: usize) -> bool {
        let Some(length) = self.text_length(from, max) else { return false };
        self.word(to).set(length as u64);
        for at in (0..length).step_by(8) {
            self.word(to + 8 + at).set(self.word(from + 8 + at).get());
        }
        true
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this is what was mapped, and nothing borrows from it any more.
        let result = unsafe { munmap(self.base.cast(), self.length) };
        debug_assert!(result.is_ok());
    }
}

/// Four bytes of the mapping.
///
/// Reads acquire and writes release. A thread that reads a value also sees all earlier writes of
/// its writer. So a state that is written last says that the other words are complete.
#[derive(Clone, Copy)]
pub(super) struct Half<'m>(pub(super) &'m AtomicU32);

/// Eight bytes of the mapping. As [`Half`].
#[derive(Clone, Copy)]
pub(super) struct Word<'m>(&'m AtomicU64);

impl Half<'_> {
    #[inline]
    pub(super) fn get(self) -> u32 {
        self.0.load(Ordering::Acquire) // pairs with the release in `set` and `swap`
    }

    #[inline]
    pub(super) fn set(self, value: u32) {
        step();
        self.0.store(value, Ordering::Release); // pairs with the acquire in `get` and `swap`
    }

    /// Runs `write`. The sequence number is odd during the call, so that readers can detect it.
    pub(super) fn odd_while(self, write: impl FnOnce()) {
        self.set(self.get() | 1);
        write();
        self.set(self.get().wrapping_add(1) & !1);
    }

    /// Writes `new` if the value is `old`. Returns whether it was.
    #[inline]
    pub(super) fn swap(self, old: u32, new: u32) -> bool {
        step();
        // Success pairs with `get` and `set` above. After a failure no value is used.
        self.0.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }
}

impl Word<'_> {
    #[inline]
    pub(super) fn get(self) -> u64 {
        self.0.load(Ordering::Acquire) // pairs with the release in `set`
    }

    #[inline]
    pub(super) fn set(self, value: u64) {
        step();
        self.0.store(value, Ordering::Release); // pairs with the acquire in `get`
    }
}
