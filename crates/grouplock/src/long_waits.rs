//! Feature `tracing`: events and spans for long waits, by the crate [`tracing`].
//!
//! Waits that are not long report nothing. A thread that has waited for the
//! [threshold](set_threshold) reports that once, and then continues to wait:
//!
//! | what | level | when | fields |
//! |---|---|---|---|
//! | span `long_wait` | `WARN` | from the threshold to the end of the wait | `lock`, `exclusive`, `sessions` |
//! | event `still waiting` | `WARN` | at the threshold, in that span | `lock`, `waited_ms`, `policy`, `holders`, `waiting_phases`, `waiters` |
//! | event `waited` | `WARN` | at the end of a long wait, in that span | `lock`, `waited_ms`, `inside`: whether it entered |
//! | event `strict order` | `DEBUG` | the patience of a waiter is over, see [`Policy::Eventual`](crate::Policy::Eventual) | `lock`, `waited_ms` |
//!
//! The target is `grouplock`. `lock` is the number from
//! [`GroupLock::address`](crate::GroupLock::address), in hexadecimal. A task reports only the event
//! `waited`, when it is polled and is inside, or when it is dropped: while it waits, no code reads
//! the clock for it. A [`Handover`](crate::cores::Handover) reports nothing. A panic of a
//! subscriber does no harm.
//!
//! ```
//! use std::time::Duration;
//!
//! // Reports waits of 5 ms and more. The default is 100 ms.
//! grouplock::long_waits::set_threshold(Duration::from_millis(5));
//! assert_eq!(grouplock::long_waits::threshold(), Duration::from_millis(5));
//! ```

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use ::tracing::span::EnteredSpan;
use ::tracing::{Level, debug, span, warn};

use crate::cores::Signal;
use crate::foreign::contain;
use crate::watch::{Crowd, Observer, PanicReason, RequestInfo};

/// In nanoseconds.
static THRESHOLD: AtomicU64 = AtomicU64::new(100_000_000);

/// Sets how long a wait must be to be long, in the whole process, for waits that begin from now on.
pub fn set_threshold(threshold: Duration) {
    // Relaxed: nothing else depends on it.
    THRESHOLD.store(u64::try_from(threshold.as_nanos()).unwrap_or(u64::MAX), Relaxed);
}

/// How long a wait must be to be long.
pub fn threshold() -> Duration {
    // Relaxed: as above.
    Duration::from_nanos(THRESHOLD.load(Relaxed))
}

/// People read addresses in hexadecimal.
fn hex(lock: usize) -> impl ::tracing::Value {
    ::tracing::field::display(format!("{lock:#x}"))
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A thread that sleeps until it is admitted.
pub(crate) struct Wait {
    request: RequestInfo,
    since: Instant,
    /// When to report. `None` after the report, or if no wait is long.
    report_at: Option<Instant>,
    span: Option<EnteredSpan>,
    /// How long it had waited when the lock turned to strict order, until that is reported.
    strict: Option<Duration>,
}

impl Observer for Wait {
    fn begin(
        request: RequestInfo,
        _: &Arc<Signal>,
        _no_deadline: bool,
        _must_finish: bool,
    ) -> Self {
        let since = Instant::now();
        let report_at = since.checked_add(threshold());
        Wait { request, since, report_at, span: None, strict: None }
    }

    fn next_look(&self) -> Option<Instant> {
        self.report_at
    }

    fn look(&mut self, crowd: &dyn Fn() -> Crowd) -> Option<PanicReason> {
        contain(|| self.report(crowd));
        None
    }

    fn turned_strict(&mut self) {
        self.strict = Some(self.since.elapsed());
    }

    fn end(mut self, inside: bool) {
        contain(move || {
            self.report_strict();
            // A thread that was admitted at the last moment may not have reported yet.
            if self.span.is_some() || self.report_at.is_some_and(|time| Instant::now() >= time) {
                waited(self.request, self.since, inside);
            }
        });
    }
}

impl Wait {
    fn report(&mut self, crowd: &dyn Fn() -> Crowd) {
        self.report_strict();
        let Some(report_at) = self.report_at else { return };
        if Instant::now() < report_at {
            return;
        }
        self.report_at = None;
        let RequestInfo { lock, exclusive, sessions } = self.request;
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

    fn report_strict(&mut self) {
        if let Some(waited) = self.strict.take() {
            let lock = self.request.lock;
            let waited_ms = milliseconds(waited);
            debug!(target: "grouplock", lock = hex(lock), waited_ms, "strict order");
        }
    }
}

fn waited(RequestInfo { lock, .. }: RequestInfo, since: Instant, inside: bool) {
    let waited_ms = milliseconds(since.elapsed());
    warn!(target: "grouplock", lock = hex(lock), waited_ms, inside, "waited");
}

/// A waiting task.
#[derive(Debug)]
pub(crate) struct TaskWait {
    since: Instant,
    threshold: Duration,
}

impl TaskWait {
    pub(crate) fn begin() -> Self {
        TaskWait { since: Instant::now(), threshold: threshold() }
    }

    /// Ends the wait. Runs foreign code: the caller must not hold the internal lock.
    pub(crate) fn end(&self, request: RequestInfo, inside: bool) {
        if self.since.elapsed() >= self.threshold {
            contain(|| waited(request, self.since, inside));
        }
    }
}
