//! What processes see of each other, written down where the room has no part in it.
//!
//! A mapped file of its own with an entry for each process: the session and epoch it is inside with. Whoever enters looks at
//! all others. Somebody who is about to be killed is marked first, since it cannot take its entry back.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use nix::sys::mman::{MapFlags, ProtFlags, mmap};

const WORDS: usize = 4;
const SIZE: usize = 64 * 1024;

pub(crate) struct Ledger {
    words: &'static [AtomicU64],
}

/// One process's part.
pub(crate) struct Entry<'l> {
    /// 0 outside; else one more than the session, and the epoch above.
    inside: &'l AtomicU64,
    doomed: &'l AtomicU64,
    entries: &'l AtomicU64,
    waits: &'l AtomicU64,
}

impl Ledger {
    /// Opens it, and makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Self {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path);
        let file = file.expect("the ledger can be opened");
        file.set_len(SIZE as u64).expect("the ledger has its size");
        let size = NonZeroUsize::new(SIZE).expect("it is not zero");
        let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
        let base = unsafe { mmap(None, size, access, MapFlags::MAP_SHARED, file, 0) };
        let base = base.expect("the ledger can be mapped");
        // SAFETY: the mapping is aligned, has that size, is never unmapped and only accessed as these atomics.
        let words = unsafe { std::slice::from_raw_parts(base.as_ptr().cast(), SIZE / 8) };
        Ledger { words }
    }

    /// Set when it is time to end.
    pub(crate) fn over(&self) -> &AtomicU64 {
        &self.words[0]
    }

    /// The largest epoch that anybody was inside with.
    fn epoch(&self) -> &AtomicU64 {
        &self.words[1]
    }

    pub(crate) fn entry(&self, number: usize) -> Entry<'_> {
        let words = &self.words[8 + number * WORDS..][..WORDS];
        Entry { inside: &words[0], doomed: &words[1], entries: &words[2], waits: &words[3] }
    }

    /// To be called inside, at the beginning; an error tells what is wrong.
    pub(crate) fn enter(
        &self,
        number: usize,
        processes: usize,
        session: usize,
        epoch: u64,
    ) -> Result<(), String> {
        let mine = self.entry(number);
        let mark = epoch << 8 | (session as u64 + 1);
        mine.inside.store(mark, SeqCst);
        mine.entries.fetch_add(1, SeqCst);
        for other in (0..processes).filter(|other| *other != number) {
            let entry = self.entry(other);
            let seen = entry.inside.load(SeqCst);
            if seen != 0 && seen != mark && entry.doomed.load(SeqCst) == 0 {
                // It may have left and been killed since.
                let again = entry.inside.load(SeqCst);
                if again == seen && entry.doomed.load(SeqCst) == 0 {
                    let (theirs, at) = ((seen & 0xff) - 1, seen >> 8);
                    return Err(format!(
                        "{number} is inside with session {session}, epoch {epoch}, \
                         and so is {other} with session {theirs}, epoch {at}"
                    ));
                }
            }
        }
        let largest = self.epoch().fetch_max(epoch, SeqCst);
        if largest > epoch {
            return Err(format!("{number} is inside with epoch {epoch} after epoch {largest}"));
        }
        Ok(())
    }

    /// To be called inside, at the end.
    pub(crate) fn leave(&self, number: usize) {
        self.entry(number).inside.store(0, SeqCst);
    }
}

impl Entry<'_> {
    /// To be called before it is killed.
    pub(crate) fn doom(&self) {
        self.doomed.store(1, SeqCst);
    }

    /// Whether it is inside.
    pub(crate) fn is_inside(&self) -> bool {
        self.inside.load(SeqCst) != 0
    }

    /// Marks whether it waits.
    pub(crate) fn set_waiting(&self, waits: bool) {
        self.waits.store(waits.into(), SeqCst);
    }

    pub(crate) fn is_waiting(&self) -> bool {
        self.waits.load(SeqCst) != 0
    }

    /// For whoever comes after the one that was killed.
    pub(crate) fn clear(&self) {
        self.waits.store(0, SeqCst);
        self.inside.store(0, SeqCst);
        self.doomed.store(0, SeqCst);
    }

    pub(crate) fn entries(&self) -> u64 {
        self.entries.load(SeqCst)
    }
}
