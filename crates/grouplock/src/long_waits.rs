//! Feature `tracing`: events and spans for long waits, by the crate [`tracing`].
//!
//! Nothing happens while nobody waits for long. A thread that has waited for the [threshold](set_threshold) tells so, once, while it waits
//! on:
//!
//! | what | level | when | fields |
//! |---|---|---|---|
//! | span `long_wait` | `WARN` | from the threshold to the end of the wait | `lock`, `exclusive`, `sessions` |
//! | event `still waiting` | `WARN` | at the threshold, in that span | `lock`, `waited_ms`, `policy`, `holders`, `waiting_phases`, `waiters` |
//! | event `waited` | `WARN` | at the end of a long wait, in that span | `lock`, `waited_ms`, `inside`: whether it got in |
//! | event `strict order` | `DEBUG` | a waiter has lost its patience, see [`Policy::Eventual`](crate::Policy::Eventual) | `lock`, `waited_ms` |
//!
//! The target is `grouplock`. `lock` is the number that [`GroupLock::address`](crate::GroupLock::address) tells, in
//! hexadecimal. For a task there is the event
//! `waited` only, when it is polled and finds itself inside, or is dropped: while it waits nobody looks at the clock for it.
//! A [`Handover`](crate::cores::Handover) tells nothing. A subscriber that panics does no harm.
//!
//! ```
//! use std::time::Duration;
//!
//! // Tells of waits of 5 ms and more; without this, of 100 ms.
//! grouplock::long_waits::set_threshold(Duration::from_millis(5));
//! assert_eq!(grouplock::long_waits::threshold(), Duration::from_millis(5));
//! ```

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ::tracing::span::EnteredSpan;
use ::tracing::{Level, debug, span, warn};

use crate::cores::Signal;
use crate::watch::{Crowd, GiveUp, Observer, Request};

/// In nanoseconds.
static THRESHOLD: AtomicU64 = AtomicU64::new(100_000_000);

/// Says how long a wait is long, in the whole process, for waits that begin from now on.
pub fn set_threshold(threshold: Duration) {
    // Relaxed: nothing else depends on it.
    THRESHOLD.store(u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX), Relaxed);
}

/// How long a wait is long.
pub fn threshold() -> Duration {
    // Relaxed: as above.
    Duration::from_nanos(THRESHOLD.load(Relaxed))
}

/// Addresses are read by people.
fn hex(lock: usize) -> impl ::tracing::Value {
    ::tracing::field::display(format!("{lock:#x}"))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A thread that sleeps until it is let in.
pub(crate) struct Wait {
    request: Request,
    since: Instant,
    /// `None` once it has been told, or if no wait is long.
    tell_at: Option<Instant>,
    span: Option<EnteredSpan>,
    /// For how long it had waited when it made the lock strict, until that is told.
    strict: Option<Duration>,
}

impl Observer for Wait {
    fn begin(request: Request, _: &Arc<Signal>, _endless: bool, _bound: bool) -> Self {
        let since = Instant::now();
        let tell_at = since.checked_add(threshold());
        Wait { request, since, tell_at, span: None, strict: None }
    }

    fn next_look(&self) -> Option<Instant> {
        self.tell_at
    }

    fn look(&mut self, crowd: &dyn Fn() -> Crowd) -> Option<GiveUp> {
        contain(|| self.tell(crowd));
        None
    }

    fn turned_strict(&mut self) {
        self.strict = Some(self.since.elapsed());
    }

    fn end(mut self, inside: bool) {
        contain(move || {
            self.tell_strict();
            // Let in at the last moment, it may not have told yet.
            if self.span.is_some() || self.tell_at.is_some_and(|time| Instant::now() >= time) {
                waited(self.request, self.since, inside);
            }
        });
    }
}

impl Wait {
    fn tell(&mut self, crowd: &dyn Fn() -> Crowd) {
        self.tell_strict();
        let Some(tell_at) = self.tell_at else { return };
        if Instant::now() < tell_at {
            return;
        }
        self.tell_at = None;
        let Request { lock, exclusive, sessions } = self.request;
        self.span = Some(
            span!(target: "grouplock", Level::WARN, "long_wait", lock = hex(lock), exclusive, sessions)
                .entered(),
        );
        let Crowd { policy, holders, phases, waiters } = crowd();
        warn!(
            target: "grouplock",
            lock = hex(lock),
            waited_ms = milliseconds(self.since.elapsed()),
            ?policy,
            holders,
            waiting_phases = phases,
            waiters,
            "still waiting"
        );
    }

    fn tell_strict(&mut self) {
        if let Some(waited) = self.strict.take() {
            let lock = self.request.lock;
            let waited_ms = milliseconds(waited);
            debug!(target: "grouplock", lock = hex(lock), waited_ms, "strict order");
        }
    }
}

/// Runs a subscriber. If it panics, that has been reported by the panic hook, and goes no further: who waits must go on waiting, and who is
/// inside must get its guard.
fn contain(tell: impl FnOnce()) {
    let _ = catch_unwind(AssertUnwindSafe(tell));
}

fn waited(Request { lock, .. }: Request, since: Instant, inside: bool) {
    let waited_ms = milliseconds(since.elapsed());
    warn!(target: "grouplock", lock = hex(lock), waited_ms, inside, "waited");
}

/// A task that waits.
#[derive(Debug)]
pub(crate) struct TaskWait {
    since: Instant,
    threshold: Duration,
}

impl TaskWait {
    pub(crate) fn begin() -> Self {
        TaskWait { since: Instant::now(), threshold: threshold() }
    }

    /// The wait is over. Runs foreign code: not to be called with the internal lock held.
    pub(crate) fn end(&self, request: Request, inside: bool) {
        if self.since.elapsed() >= self.threshold {
            contain(|| waited(request, self.since, inside));
        }
    }
}
