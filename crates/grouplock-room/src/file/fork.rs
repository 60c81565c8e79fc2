//! Detects that this process is a forked child that has inherited a handle.
//!
//! A page contains a number that is unique for this process, and the kernel wipes the page on fork.
//! Reading it is one load. Asking for the process id would be a system call for each entry.

use std::io;
use std::num::NonZeroUsize;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, MmapAdvise, ProtFlags, madvise, mmap_anonymous};

/// Identifies this process among its parents and children.
#[derive(Clone, Copy, Debug)]
pub(super) struct Birth {
    page: &'static AtomicU64,
    number: u64,
}

static PAGE: OnceLock<Result<&'static AtomicU64, i32>> = OnceLock::new();

impl Birth {
    /// Identifies this process.
    pub(super) fn now() -> io::Result<Self> {
        let page = PAGE.get_or_init(page).map_err(io::Error::from_raw_os_error)?;
        // The process id and the time. A child with the process id of an ancestor was started
        // later.
        let number = super::clock::monotonic() << 22 ^ u64::from(std::process::id()) | 1;
        let number = match page.compare_exchange(0, number, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => number,
            Err(present) => present,
        };
        Ok(Birth { page, number })
    }

    /// Whether this process is the one that made it.
    #[inline]
    pub(super) fn is_ours(self) -> bool {
        // Relaxed: the page changes between processes, not between threads.
        self.page.load(Ordering::Relaxed) == self.number
    }
}

fn page() -> Result<&'static AtomicU64, i32> {
    const SIZE: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
    let access = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
    let page = unsafe { mmap_anonymous(None, SIZE, access, MapFlags::MAP_PRIVATE) };
    let page = page.map_err(|error| error as i32)?;
    // SAFETY: the range is the mapping that was just made; wiping it in children is the purpose.
    let advised = unsafe { madvise(page, SIZE.get(), MmapAdvise::MADV_WIPEONFORK) };
    advised.map_err(|error| error as i32)?;
    // SAFETY: the page is aligned, zeroed, never unmapped and only accessed as this atomic.
    Ok(unsafe { AtomicU64::from_ptr(page.as_ptr().cast()) })
}
