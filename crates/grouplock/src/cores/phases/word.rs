//! The word in front of the queue: the number of holders, and what a thread that enters or leaves
//! must do.
//!
//! ```text
//!  31    30 …… 9   8        7       6      5         4        3         2      1       0
//! ┌────┬─────────┬────────┬───────┬──────┬─────────┬────────┬─────────┬──────┬───────┬──────┐
//! │FULL│ holders │RESERVED│LIMITED│SET_UP│EXCLUSIVE│CHANGING│MUST_LOCK│NOTIFY│SLEEPER│LOCKED│
//! └────┴─────────┴────────┴───────┴──────┴─────────┴────────┴─────────┴──────┴───────┴──────┘
//! ```
//!
//! This file is in `grouplock` and in `grouplock-algorithms`, where the lab explores the protocol.
//! A test checks that the two are equal.

/// The internal lock. It guards the queue, and the name of the session inside. It does not prevent
/// threads from entering or leaving.
pub const LOCKED: u32 = 1;
/// A thread sleeps until `LOCKED` is clear.
pub const SLEEPER: u32 = 1 << 1;
/// The queue is not empty. The thread that leaves the room empty must admit waiters.
pub const NOTIFY: u32 = 1 << 2;
/// A request must take the internal lock, and ask whether it may enter before the waiters.
pub const MUST_LOCK: u32 = 1 << 3;
/// The room is empty, and its name may change. Set only while `LOCKED` is held, or in the step that
/// sets `LOCKED`.
pub const CHANGING: u32 = 1 << 4;
/// The holder is alone.
pub const EXCLUSIVE: u32 = 1 << 5;
/// The room is set up for the session that is its name. Only the thread that holds `LOCKED` changes
/// this.
pub const SET_UP: u32 = 1 << 6;
/// Sessions have a limit of holders: `MUST_LOCK` is always set, and every holder that leaves admits
/// waiters. Never changes.
pub const LIMITED: u32 = 1 << 7;
/// A thread that asks to be alone waits a moment for the holders to leave. It clears this bit, or
/// another such thread or a release of the internal lock does.
pub const RESERVED: u32 = 1 << 8;
/// One holder, or one thread that compares its session with the name.
pub const ONE_HOLDER: u32 = 1 << 9;
/// No more holders are admitted.
pub const FULL: u32 = 1 << 31;

/// All bits that count.
const COUNT: u32 = !(ONE_HOLDER - 1);
/// Any of these: a request does not enter by the fast path.
const DOOR: u32 = MUST_LOCK | CHANGING | RESERVED | EXCLUSIVE | FULL;

/// So many holders can share a session. The next request waits. (The word counts up to twice as
/// many, as threads that find it full are counted for a moment.)
pub const MOST_HOLDERS: usize = (FULL / ONE_HOLDER) as usize;

/// Whether a thread that adds its count may read the name, and enter if the name is its session.
pub const fn is_open(word: u32) -> bool {
    word & DOOR == 0
}

/// Whether nobody is inside.
pub const fn is_empty(word: u32) -> bool {
    word & COUNT == 0
}

/// Whether a thread that holds the internal lock, and whose session is the name, can join the
/// holders.
pub const fn is_joinable(word: u32) -> bool {
    word & (EXCLUSIVE | FULL) == 0
}

/// Whether no more holders are admitted.
pub const fn is_full(word: u32) -> bool {
    word & FULL != 0
}

/// The number of holders.
pub const fn holders(word: u32) -> usize {
    ((word & COUNT) / ONE_HOLDER) as usize
}

/// Whether a thread that subtracted `count`, and found `word`, must admit waiters: it was the last
/// holder, or was alone, or there is a limit. If the internal lock is held, the thread that holds
/// it does that: the step that releases the lock compares the whole word, and so notices that a
/// holder left.
///
/// A holder that was alone may find more than its own count: a thread that found the door shut has
/// not subtracted its count yet. That thread may enter then, and never admit waiters.
pub const fn must_admit_waiters(word: u32, count: u32) -> bool {
    let made_way = holders(word) == 1 || word & LIMITED != 0 || count & EXCLUSIVE != 0;
    word & (NOTIFY | LOCKED) == NOTIFY && made_way
}

/// Whether a holder that left, and found `before`, must still admit waiters: a waiter may be able
/// to enter now, and no thread is about to admit waiters.
///
/// If that holder was alone, a thread may have entered the session that is the room's name, and
/// others may wait for that session.
pub const fn must_still_admit_waiters(word: u32, before: u32) -> bool {
    let joinable = word & LIMITED != 0 || before & EXCLUSIVE != 0;
    word & (NOTIFY | LOCKED) == NOTIFY && (is_empty(word) || joinable)
}
