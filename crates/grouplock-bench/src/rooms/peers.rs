//! What is measured.

use std::error::Error;
use std::fs::{File, OpenOptions};
use std::hint::black_box;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{self, NonNull};

use grouplock_room::Room;

use crate::uncontended::subjects::Subject;

/// Our rooms.
pub const ROOM: &str = "room, alone";
/// Our rooms, where someone of the same session is inside.
pub const ROOM_JOIN: &str = "room, joining";
/// Our rooms, where a thousand are inside.
pub const ROOM_JOIN_MANY: &str = "room, joining 1,000";
/// The lock to beat.
pub const FLOCK: &str = "flock(2), exclusive";
/// The same, shared.
pub const FLOCK_SHARED: &str = "flock(2), shared";
/// Locks of an open file description.
pub const OFD: &str = "OFD lock, exclusive";
/// A robust mutex of the C library, shared between processes.
pub const ROBUST_MUTEX: &str = "robust pthread mutex";
/// A readers-writers lock of the C library, shared between processes.
pub const RWLOCK: &str = "pthread rwlock, read";

/// All of them, with their files in `directory`.
///
/// # Errors
/// If one of them cannot be had.
pub fn all(directory: &Path) -> Result<Vec<Subject>, Box<dyn Error>> {
    Ok(vec![
        room(directory)?,
        room_join(directory, ROOM_JOIN, 1)?,
        room_join(directory, ROOM_JOIN_MANY, 1_000)?,
        flock(directory, FLOCK, libc::LOCK_EX)?,
        flock(directory, FLOCK_SHARED, libc::LOCK_SH)?,
        ofd(directory)?,
        robust_mutex(directory)?,
        rwlock(directory)?,
    ])
}

fn peer(name: &'static str, passage: impl FnMut() + 'static) -> Subject {
    Subject::new(name, "between processes", None, passage)
}

fn room(directory: &Path) -> Result<Subject, Box<dyn Error>> {
    let room = Room::open(directory, "alone")?;
    Ok(peer(ROOM, move || {
        let inside = black_box(&room).enter(black_box("session")).expect("nobody else is here");
        black_box(&inside);
    }))
}

fn room_join(
    directory: &Path,
    name: &'static str,
    holders: usize,
) -> Result<Subject, Box<dyn Error>> {
    let room = Room::open(directory, name)?;
    let inside: Result<Vec<_>, _> =
        (0..holders).map(|_| room.request("session").enter_owned()).collect();
    let inside = inside?;
    Ok(peer(name, move || {
        let _ = &inside;
        let joined = black_box(&room).enter(black_box("session")).expect("it is shared");
        black_box(&joined);
    }))
}

fn lock_file(directory: &Path, name: &str) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .open(directory.join(name))
}

fn flock(
    directory: &Path,
    name: &'static str,
    kind: libc::c_int,
) -> Result<Subject, Box<dyn Error>> {
    let file = lock_file(directory, "flock")?;
    Ok(peer(name, move || {
        // SAFETY: takes a descriptor that is open, and no pointers.
        let taken = unsafe { libc::flock(black_box(file.as_raw_fd()), kind) };
        // SAFETY: as above.
        let given_back = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
        assert_eq!((taken, given_back), (0, 0));
    }))
}

fn ofd(directory: &Path) -> Result<Subject, Box<dyn Error>> {
    let file = lock_file(directory, "ofd")?;
    let lock = |kind: libc::c_int| libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    Ok(peer(OFD, move || {
        let (lock, unlock) = (lock(libc::F_WRLCK), lock(libc::F_UNLCK));
        let file = black_box(file.as_raw_fd());
        // SAFETY: the descriptor is open and the structure alive for the call.
        let taken = unsafe { libc::fcntl(file, libc::F_OFD_SETLKW, &raw const lock) };
        // SAFETY: as above.
        let given_back = unsafe { libc::fcntl(file, libc::F_OFD_SETLK, &raw const unlock) };
        assert_eq!((taken, given_back), (0, 0));
    }))
}

/// A page of a file that processes could share. Never unmapped.
fn shared_page(directory: &Path, name: &str) -> io::Result<NonNull<libc::c_void>> {
    let file = lock_file(directory, name)?;
    file.set_len(4096)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory that is in use.
    let page =
        unsafe { libc::mmap(ptr::null_mut(), 4096, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if page == libc::MAP_FAILED {
        return Err(io::Error::last_os_error());
    }
    NonNull::new(page).ok_or_else(io::Error::last_os_error)
}

fn check(number: libc::c_int) -> io::Result<()> {
    if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) }
}

fn robust_mutex(directory: &Path) -> Result<Subject, Box<dyn Error>> {
    let mutex = shared_page(directory, "mutex")?.cast::<libc::pthread_mutex_t>().as_ptr();
    let mut attributes = std::mem::MaybeUninit::uninit();
    // SAFETY: the attributes can be written to.
    check(unsafe { libc::pthread_mutexattr_init(attributes.as_mut_ptr()) })?;
    let shared = libc::PTHREAD_PROCESS_SHARED;
    // SAFETY: the attributes are initialised.
    check(unsafe { libc::pthread_mutexattr_setpshared(attributes.as_mut_ptr(), shared) })?;
    let robust = libc::PTHREAD_MUTEX_ROBUST;
    // SAFETY: the attributes are initialised.
    check(unsafe { libc::pthread_mutexattr_setrobust(attributes.as_mut_ptr(), robust) })?;
    // SAFETY: the page is aligned, large enough, zeroed, and nobody else's.
    check(unsafe { libc::pthread_mutex_init(mutex, attributes.as_ptr()) })?;
    Ok(peer(ROBUST_MUTEX, move || {
        // SAFETY: the mutex is initialised and its page never unmapped.
        let taken = unsafe { libc::pthread_mutex_lock(black_box(mutex)) };
        // SAFETY: as above, and it is ours.
        let given_back = unsafe { libc::pthread_mutex_unlock(mutex) };
        assert_eq!((taken, given_back), (0, 0));
    }))
}

fn rwlock(directory: &Path) -> Result<Subject, Box<dyn Error>> {
    let lock = shared_page(directory, "rwlock")?.cast::<libc::pthread_rwlock_t>().as_ptr();
    let mut attributes = std::mem::MaybeUninit::uninit();
    // SAFETY: the attributes can be written to.
    check(unsafe { libc::pthread_rwlockattr_init(attributes.as_mut_ptr()) })?;
    let shared = libc::PTHREAD_PROCESS_SHARED;
    // SAFETY: the attributes are initialised.
    check(unsafe { libc::pthread_rwlockattr_setpshared(attributes.as_mut_ptr(), shared) })?;
    // SAFETY: the page is aligned, large enough, zeroed, and nobody else's.
    check(unsafe { libc::pthread_rwlock_init(lock, attributes.as_ptr()) })?;
    Ok(peer(RWLOCK, move || {
        // SAFETY: the lock is initialised and its page never unmapped.
        let taken = unsafe { libc::pthread_rwlock_rdlock(black_box(lock)) };
        // SAFETY: as above, and we have it.
        let given_back = unsafe { libc::pthread_rwlock_unlock(lock) };
        assert_eq!((taken, given_back), (0, 0));
    }))
}
