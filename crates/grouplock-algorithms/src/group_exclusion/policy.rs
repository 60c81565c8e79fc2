//! Who goes next, and what a waiter may do: the policies of [`Phases`](crate::phases::Phases) that can be explored.
//!
//! | policy | as in `grouplock` | a waiter |
//! |---|---|---|
//! | [`Fifo`] | `Policy::Fifo` | is never overtaken, and is handed the room |
//! | [`Patient`] | `Policy::Eventual` with an endless patience | may be overtaken for ever, and is invited to try for a free room |
//! | [`Eventual`] | `Policy::Eventual` | as `Patient` at first; loses its patience at any moment, and is handed the room from then on |
//! | [`Cancelled`] | each of these, with timeouts and dropped futures | gives up once in each passage in which it has to wait, and then asks again |
//! | [`Alone`] | each of these, with exclusive requests | wants the room to itself if its session is number 1 |
//! | [`Limited`] | each of these, with `at_most` | shares session number `n` with `n` - 1 others at most |
//! | [`SetUp`] | each of these, with `enter_with` | enters a room that is set up for its session, or is let in alone to set it up |
//! | [`Mixed`] | each of these, with `enter_with`, `enter` and `downgrade` | asks with set-up, alone with a downgrade, and without, by turns |

use core::fmt;
use core::marker::PhantomData;

/// Who goes next, and what a waiter may do.
pub trait Policy: fmt::Debug + Send + Sync + 'static {
    /// The name of the lock with this policy.
    const NAME: &'static str;
    /// Nobody overtakes one who waits.
    const STRICT: bool = false;
    /// A waiter may lose its patience, and then nobody overtakes it.
    const IMPATIENT: bool = false;
    /// A waiter gives up once in each passage, by turns as a thread whose time is over and as a task that is dropped.
    const GIVES_UP: bool = false;
    /// Who asks for session 1 wants the room to itself.
    const ALONE: bool = false;
    /// At most `n` processes share session `n`.
    const LIMITED: bool = false;
    /// Rooms are set up for their sessions. Where waiters give up, a set-up fails in every other passage, and a task gives up in the others.
    const SETS_UP: bool = false;
    /// With `SETS_UP`: not all requests want that.
    const MIXED: bool = false;
}

/// `Policy::Fifo`: by order of arrival.
#[derive(Debug)]
pub struct Fifo;

/// `Policy::Eventual`, with a patience that may be over at any moment. On real memory it is over at once.
#[derive(Debug)]
pub struct Eventual;

/// `Policy::Eventual`, with a patience that is never over.
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

/// As [`SetUp`], with requests that do not want that, and exclusive ones that open the room to their session.
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
