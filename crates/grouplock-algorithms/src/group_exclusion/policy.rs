//! Who goes next, and what a waiter may do: the policies of [`Phases`](crate::phases::Phases) that can be explored.
//!
//! | policy | as in `grouplock` | a waiter |
//! |---|---|---|
//! | [`Fifo`] | `Policy::Fifo` | is never overtaken, and is handed the room |
//! | [`Patient`] | `Policy::Eventual` with an endless patience | may be overtaken for ever, and is invited to try for a free room |
//! | [`Eventual`] | `Policy::Eventual` | as `Patient` at first; loses its patience at any moment, and is handed the room from then on |
//! | [`Cancelled`] | each of these, with timeouts and dropped futures | gives up once in each passage in which it has to wait, and then asks again |

use core::fmt;
use core::marker::PhantomData;

/// Who goes next, and what a waiter may do.
pub trait Policy: fmt::Debug + Send + Sync + 'static {
    /// The name of the lock with this policy.
    const NAME: &'static str;
    /// The name if waiters give up.
    const NAME_IF_CANCELLED: &'static str;
    /// Nobody overtakes one who waits.
    const STRICT: bool;
    /// A waiter may lose its patience, and then nobody overtakes it.
    const IMPATIENT: bool;
    /// A waiter gives up once in each passage, by turns as a thread whose time is over and as a task that is dropped.
    const GIVES_UP: bool = false;
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

impl Policy for Fifo {
    const NAME: &'static str = "phases-fifo";
    const NAME_IF_CANCELLED: &'static str = "phases-fifo-cancel";
    const STRICT: bool = true;
    const IMPATIENT: bool = false;
}

impl Policy for Eventual {
    const NAME: &'static str = "phases";
    const NAME_IF_CANCELLED: &'static str = "phases-cancel";
    const STRICT: bool = false;
    const IMPATIENT: bool = true;
}

impl Policy for Patient {
    const NAME: &'static str = "phases-patient";
    const NAME_IF_CANCELLED: &'static str = "phases-patient-cancel";
    const STRICT: bool = false;
    const IMPATIENT: bool = false;
}

impl<P: Policy> Policy for Cancelled<P> {
    const NAME: &'static str = P::NAME_IF_CANCELLED;
    const NAME_IF_CANCELLED: &'static str = P::NAME_IF_CANCELLED;
    const STRICT: bool = P::STRICT;
    const IMPATIENT: bool = P::IMPATIENT;
    const GIVES_UP: bool = true;
}
