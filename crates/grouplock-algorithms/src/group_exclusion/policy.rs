//! The policies of [`Phases`](crate::phases::Phases) that the lab can explore: the order of
//! admission, and what a waiter may do.
//!
//! | policy | as in `grouplock` | a waiter |
//! |---|---|---|
//! | [`Fifo`] | `Policy::Fifo` | is never overtaken, and is handed the room |
//! | [`Patient`] | `Policy::Eventual` with an endless patience | may be overtaken forever, and is invited to try for a free room |
//! | [`Eventual`] | `Policy::Eventual` | as `Patient` at first; its patience ends at any moment, and from then on it is handed the room |
//! | [`Cancelled`] | each of these, with timeouts and dropped futures | withdraws once in each passage in which it has to wait, and then asks again |
//! | [`Alone`] | each of these, with exclusive requests | asks to be alone if its session is number 1 |
//! | [`Limited`] | each of these, with `at_most` | shares session number `n` with at most `n` - 1 others |
//! | [`SetUp`] | each of these, with `enter_with` | enters a room that is set up for its session, or enters alone and sets it up |
//! | [`Mixed`] | each of these, with `enter_with`, `enter` and `downgrade` | asks in turn with set-up, alone with a downgrade, and without |

use core::fmt;
use core::marker::PhantomData;

/// The order of admission, and what a waiter may do.
pub trait Policy: fmt::Debug + Send + Sync + 'static {
    /// The name of the lock with this policy.
    const NAME: &'static str;
    /// No request overtakes a waiter.
    const STRICT: bool = false;
    /// The patience of a waiter may end, and then no request overtakes it.
    const IMPATIENT: bool = false;
    /// A waiter withdraws once in each passage, in turn as a thread whose deadline has passed and
    /// as a task that is dropped.
    const GIVES_UP: bool = false;
    /// A request for session 1 is a request to be alone.
    const ALONE: bool = false;
    /// At most `n` processes share session `n`.
    const LIMITED: bool = false;
    /// Rooms are set up for their sessions. Where waiters withdraw, a set-up fails in every other
    /// passage, and a task withdraws in the others.
    const SETS_UP: bool = false;
    /// With `SETS_UP`: not all requests need a set-up.
    const MIXED: bool = false;
}

/// `Policy::Fifo`: in the order of arrival.
#[derive(Debug)]
pub struct Fifo;

/// `Policy::Eventual`, with a patience that may end at any moment. On real memory it ends at once.
#[derive(Debug)]
pub struct Eventual;

/// `Policy::Eventual`, with a patience that never ends.
#[derive(Debug)]
pub struct Patient;

/// As `P`, with requests that are cancelled.
#[derive(Debug)]
pub struct Cancelled<P>(PhantomData<P>);

/// As `P`, with exclusive requests.
#[derive(Debug)]
pub struct Alone<P>(PhantomData<P>);

/// As `P`, with a limit of holders for each session.
#[derive(Debug)]
pub struct Limited<P>(PhantomData<P>);

/// As `P`, with rooms that are set up for their sessions.
#[derive(Debug)]
pub struct SetUp<P>(PhantomData<P>);

/// As [`SetUp`], with requests that need no set-up, and exclusive ones that open the room to their
/// session.
#[derive(Debug)]
pub struct Mixed<P>(PhantomData<P>);

macro_rules! policies {
    ($($policy:ty, $name:literal, $($flag:ident)*;)*) => {$(
        impl Policy for $policy {
            const NAME: &'static str = $name;
            $(const $flag: bool = true;)*
        }
    )*};
}

policies! {
    Fifo, "phases-fifo", STRICT;
    Eventual, "phases", IMPATIENT;
    Patient, "phases-patient", ;
    Cancelled<Fifo>, "phases-fifo-cancel", STRICT GIVES_UP;
    Cancelled<Eventual>, "phases-cancel", IMPATIENT GIVES_UP;
    Cancelled<Patient>, "phases-patient-cancel", GIVES_UP;
    Alone<Fifo>, "phases-fifo-alone", STRICT ALONE;
    Alone<Eventual>, "phases-alone", IMPATIENT ALONE;
    Alone<Patient>, "phases-patient-alone", ALONE;
    Cancelled<Alone<Fifo>>, "phases-fifo-alone-cancel", STRICT ALONE GIVES_UP;
    Cancelled<Alone<Patient>>, "phases-patient-alone-cancel", ALONE GIVES_UP;
    Limited<Fifo>, "phases-fifo-limited", STRICT LIMITED;
    Limited<Patient>, "phases-patient-limited", LIMITED;
    SetUp<Fifo>, "phases-fifo-setup", STRICT SETS_UP;
    SetUp<Eventual>, "phases-setup", IMPATIENT SETS_UP;
    SetUp<Patient>, "phases-patient-setup", SETS_UP;
    Cancelled<SetUp<Fifo>>, "phases-fifo-setup-cancel", STRICT SETS_UP GIVES_UP;
    Cancelled<SetUp<Patient>>, "phases-patient-setup-cancel", SETS_UP GIVES_UP;
    Mixed<Fifo>, "phases-fifo-mixed", STRICT SETS_UP MIXED;
    Mixed<Patient>, "phases-patient-mixed", SETS_UP MIXED;
}
