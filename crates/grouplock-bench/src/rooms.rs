//! What it costs to enter a room between processes, next to the locks of the system. One process
//! takes a lock that other processes could take, and releases it.

use std::fs::File;
use std::hint::black_box;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr;
use std::time::{Duration, Instant};

use clap::{Args, value_parser};
use grouplock_room::Room;
use grouplock_testing::Scratch;

use crate::machine;
use crate::report::{Cannot, Outcome, or_none, row, table};
use crate::rounds::{Subject, Times, take_turns};
use crate::statistics::{Bound, Spread};

/// Measures what it costs to enter a room between processes, next to the locks of the system.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// How many turns every lock has.
    #[arg(long, value_name = "NUMBER", default_value_t = 501, value_parser = value_parser!(u32).range(1..))]
    rounds: u32,
}

/// The length of a turn, about. Other programs interrupt few turns that are so short.
const TURN: Duration = Duration::from_micros(500);

impl Arguments {
    pub(crate) fn run(self) -> Outcome<String> {
        let directory = Scratch::new();
        let mut peers = peers(directory.path())?;
        let times = measure(&mut peers, self.rounds, TURN);
        Ok(page(self.rounds, &peers, &times))
    }
}

/// Gives every peer a turn of about `turn` in each round. A system call takes as long as many
/// passages of the others, so each peer has its own number of passages.
fn measure(peers: &mut [Subject], rounds: u32, turn: Duration) -> Times {
    let passages = |peer: &mut Subject| {
        let probe = 2_000;
        let start = Instant::now();
        peer.run(probe);
        let turns = turn.as_nanos() / start.elapsed().as_nanos().max(1);
        (turns as u64).max(1) * probe
    };
    let passages: Vec<u64> = peers.iter_mut().map(passages).collect();
    take_turns(&mut peers.iter_mut().collect::<Vec<_>>(), rounds, &passages)
}

const ROOM: &str = "room, alone";
const ROOM_JOIN: &str = "room, joining";
const ROOM_JOIN_MANY: &str = "room, joining 1,000";
const FLOCK: &str = "flock(2), exclusive";
const FLOCK_SHARED: &str = "flock(2), shared";
const OFD: &str = "OFD lock, exclusive";
const ROBUST_MUTEX: &str = "robust pthread mutex";
const RWLOCK: &str = "pthread rwlock, read";

/// A room should be at least so many times as fast as flock(2).
const GOAL: f64 = 10.0;

/// The page. Every figure comes from the run.
fn page(rounds: u32, peers: &[Subject], times: &Times) -> String {
    let index = |name| peers.iter().position(|peer| peer.name == name);
    let faster = |other| Some(times.ratio(index(other)?, index(ROOM)?));
    let rows = peers.iter().enumerate().map(|(row, Subject { name, .. })| {
        let faster = or_none(faster(name), |faster| format!("{faster:.1}"));
        row![name, format_args!("{:.1}", times.nanoseconds(row)), faster]
    });
    let head = format!("`{ROOM}` is … times as fast");
    let table = table(&["lock", "ns per passage", &head], rows);
    let verdict = match faster(FLOCK) {
        Some(Spread { median, .. }) if Bound::Least(GOAL).holds(median) => "reached",
        Some(_) => "not reached in this run",
        None => "not measured",
    };
    let faster = or_none(faster(FLOCK), |faster| format!("{faster:.1}"));
    format!(
        "\
# Rooms against the locks of the system

*For people who use rooms between processes, or consider it.*

One process takes a lock that other processes could take, and releases it. No other process uses the lock.

* On {}. The figures are those of a single run.
* {rounds} rounds. In each, every lock has one turn, and each round begins with another lock. A figure is the
  median over the rounds, with the quartiles in parentheses; a ratio is taken within each round first.
* `{ROOM}`: `Room::enter` and dropping the guard, in an empty room, through the public interface.
* `{ROOM_JOIN}`, `{ROOM_JOIN_MANY}`: the same while one holder of the same session is inside, or a thousand.
* `{OFD}`: `F_OFD_SETLKW` and `F_OFD_SETLK` on one byte.
* `{ROBUST_MUTEX}`: process-shared, in a mapped file. pthreads has no robust readers-writers lock, so this mutex is the
  peer that also survives the death of a holder; it has no sessions, no queue and no sharing.
* `{RWLOCK}`: process-shared, taken for reading. A holder that dies leaves it locked for ever.

To repeat it: `cargo run --release -p grouplock-bench -- rooms --out docs/benchmarks/rooms.md`

{table}
Goal: at least {GOAL:.0} times as fast as flock(2) when uncontended. It is {faster} times: {verdict}.
",
        machine::description(),
    )
}

/// All peers, with their files in `directory`.
fn peers(directory: &Path) -> Outcome<Vec<Subject>> {
    Ok(vec![
        room(directory, ROOM, 0)?,
        room(directory, ROOM_JOIN, 1)?,
        room(directory, ROOM_JOIN_MANY, 1_000)?,
        flock(directory, FLOCK, libc::LOCK_EX)?,
        flock(directory, FLOCK_SHARED, libc::LOCK_SH)?,
        ofd(directory)?,
        robust_mutex(directory)?,
        rwlock(directory)?,
    ])
}

/// A room of ours, in which so many holders of the same session stay.
fn room(directory: &Path, name: &str, holders: usize) -> Outcome<Subject> {
    let room = Room::open(directory, name)?;
    let inside = (0..holders).map(|_| room.request("session").enter_owned());
    let inside = inside.collect::<Result<Vec<_>, _>>()?;
    Ok(Subject::new(name, move || {
        _ = &inside;
        let guard = black_box(&room).enter(black_box("session")).expect("no other session");
        black_box(&guard);
    }))
}

fn lock_file(directory: &Path, name: &str) -> Outcome<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    options.open(directory.join(name)).cannot(format_args!("open the file {name}"))
}

fn flock(directory: &Path, name: &str, kind: libc::c_int) -> Outcome<Subject> {
    let file = lock_file(directory, "flock")?;
    Ok(Subject::new(name, move || {
        // SAFETY: takes a descriptor that is open, and no pointers.
        let taken = unsafe { libc::flock(black_box(file.as_raw_fd()), kind) };
        // SAFETY: as above.
        let released = unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_UN) };
        assert_eq!((taken, released), (0, 0));
    }))
}

fn ofd(directory: &Path) -> Outcome<Subject> {
    let file = lock_file(directory, "ofd")?;
    let lock = |kind: libc::c_int| libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: 0,
        l_len: 1,
        l_pid: 0,
    };
    Ok(Subject::new(OFD, move || {
        let (lock, unlock) = (lock(libc::F_WRLCK), lock(libc::F_UNLCK));
        let file = black_box(file.as_raw_fd());
        // SAFETY: the descriptor is open, and the structure lives during the call.
        let taken = unsafe { libc::fcntl(file, libc::F_OFD_SETLKW, &raw const lock) };
        // SAFETY: as above.
        let released = unsafe { libc::fcntl(file, libc::F_OFD_SETLK, &raw const unlock) };
        assert_eq!((taken, released), (0, 0));
    }))
}

/// A page of a file that processes could share. It is never unmapped.
fn shared_page(directory: &Path, name: &str) -> Outcome<*mut libc::c_void> {
    let file = lock_file(directory, name)?;
    file.set_len(4096)?;
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: a new mapping at an address that the kernel chooses touches no memory in use.
    let page =
        unsafe { libc::mmap(ptr::null_mut(), 4096, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
    if page == libc::MAP_FAILED { Err(io::Error::last_os_error().into()) } else { Ok(page) }
}

fn check(number: libc::c_int) -> io::Result<()> {
    if number == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(number)) }
}

/// A lock of pthreads that processes share: its attributes, then its passage.
macro_rules! pthread_lock {
    ($function:ident, $name:ident, $type:ident, $attribute:ident, $init:ident, [$($set:ident = $value:ident),*], $lock:ident, $unlock:ident) => {
        fn $function(directory: &Path) -> Outcome<Subject> {
            let lock = shared_page(directory, stringify!($function))?.cast::<libc::$type>();
            let mut attributes = MaybeUninit::uninit();
            // SAFETY: the attributes can be written.
            check(unsafe { libc::$attribute(attributes.as_mut_ptr()) })?;
            $(
                // SAFETY: the attributes are initialised.
                check(unsafe { libc::$set(attributes.as_mut_ptr(), libc::$value) })?;
            )*
            // SAFETY: the page is aligned, large enough and zeroed, and no other code uses it.
            check(unsafe { libc::$init(lock, attributes.as_ptr()) })?;
            Ok(Subject::new($name, move || {
                // SAFETY: the lock is initialised and its page is never unmapped.
                let taken = unsafe { libc::$lock(black_box(lock)) };
                // SAFETY: as above, and this thread holds the lock.
                let released = unsafe { libc::$unlock(lock) };
                assert_eq!((taken, released), (0, 0));
            }))
        }
    };
}

pthread_lock!(
    robust_mutex,
    ROBUST_MUTEX,
    pthread_mutex_t,
    pthread_mutexattr_init,
    pthread_mutex_init,
    [
        pthread_mutexattr_setpshared = PTHREAD_PROCESS_SHARED,
        pthread_mutexattr_setrobust = PTHREAD_MUTEX_ROBUST
    ],
    pthread_mutex_lock,
    pthread_mutex_unlock
);

pthread_lock!(
    rwlock,
    RWLOCK,
    pthread_rwlock_t,
    pthread_rwlockattr_init,
    pthread_rwlock_init,
    [pthread_rwlockattr_setpshared = PTHREAD_PROCESS_SHARED],
    pthread_rwlock_rdlock,
    pthread_rwlock_unlock
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_can_be_measured() {
        let directory = Scratch::new();
        let mut peers = peers(directory.path()).expect("this machine has all of them");
        let times = measure(&mut peers, 2, Duration::ZERO);
        let page = page(2, &peers, &times);
        for (at, peer) in peers.iter().enumerate() {
            assert!(times.nanoseconds(at).median > 0.0, "{}", peer.name);
            assert!(page.contains(&format!("| {} |", peer.name)), "{page}");
        }
    }
}
