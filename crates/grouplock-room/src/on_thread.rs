//! Blocking work for tasks on a thread of its own, because no reactor knows futexes.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

/// A future that runs a function on a thread. The first poll starts the thread. If it cannot be
/// started, the function runs in the poll. That blocks the task, but gives the result.
pub(crate) struct OnThread<F, T> {
    work: Option<F>,
    shared: Arc<Mutex<Shared<T>>>,
}

struct Shared<T> {
    result: Option<T>,
    waker: Option<Waker>,
}

impl<F, T> OnThread<F, T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    pub(crate) fn new(work: F) -> Self {
        let shared = Shared { result: None, waker: None };
        OnThread { work: Some(work), shared: Arc::new(Mutex::new(shared)) }
    }
}

impl<F, T> Future for OnThread<F, T>
where
    F: FnOnce() -> T + Send + Unpin + 'static,
    T: Send + 'static,
{
    type Output = T;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        if let Some(work) = this.work.take() {
            this.shared.lock().unwrap_or_else(PoisonError::into_inner).waker =
                Some(context.waker().clone());
            let work = Arc::new(Mutex::new(Some(work)));
            let (theirs, shared) = (Arc::clone(&work), Arc::clone(&this.shared));
            let run = move || {
                let Some(work) = theirs.lock().unwrap_or_else(PoisonError::into_inner).take()
                else {
                    return;
                };
                let result = work();
                let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
                shared.result = Some(result);
                let waker = shared.waker.take();
                drop(shared);
                waker.into_iter().for_each(Waker::wake);
            };
            let started = std::thread::Builder::new().name("grouplock-wait".to_owned()).spawn(run);
            if started.is_err()
                && let Some(work) = work.lock().unwrap_or_else(PoisonError::into_inner).take()
            {
                return Poll::Ready(work());
            }
        }
        let mut shared = this.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(result) = shared.result.take() {
            return Poll::Ready(result);
        }
        shared.waker = Some(context.waker().clone());
        Poll::Pending
    }
}
