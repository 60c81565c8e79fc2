//! Foreign code that the lock runs for another thread or task: wakers, destructors of sessions, and
//! functions that receive reports. A panic of such code must not spread.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Runs foreign code. The panic hook reports a panic of it, and the panic ends here: the calling
/// thread is about to enter, to leave, or to sleep, and must still wake others.
pub(crate) fn contain(foreign: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(foreign)) {
        // A drop of the payload could panic again.
        std::mem::forget(payload);
    }
}

/// Drops a session or a waker. A panic of its destructor ends here.
#[inline]
pub(crate) fn discard<T>(value: T) {
    if std::mem::needs_drop::<T>() {
        contain(|| drop(value));
    }
}
