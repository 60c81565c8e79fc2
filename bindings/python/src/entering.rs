//! A request of an asyncio task.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use grouplock_room::Enter;
use pyo3::prelude::*;

use crate::errors::exception;
use crate::inside::Inside;

/// A request that waits. `withdraw`, or the end of the object, withdraws it.
#[pyclass(frozen, module = "grouplock._native")]
pub(crate) struct Entering {
    /// `None` after it was admitted, refused or withdrawn.
    request: Mutex<Option<Enter>>,
}

impl Entering {
    pub(crate) fn new(request: Enter) -> Self {
        Entering { request: Mutex::new(Some(request)) }
    }

    fn take(&self) -> Option<Enter> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[pymethods]
impl Entering {
    /// Returns the holding. Or returns None, and later some thread calls `wake` once: then poll
    /// again.
    fn poll(&self, py: Python<'_>, wake: Py<PyAny>) -> PyResult<Option<Inside>> {
        let waker = Waker::from(Arc::new(Call(wake)));
        let polled = py.detach(|| {
            let mut slot = self.request.lock().unwrap_or_else(PoisonError::into_inner);
            let request = slot.as_mut()?;
            let polled = Pin::new(request).poll(&mut Context::from_waker(&waker));
            if polled.is_ready() {
                *slot = None;
            }
            Some(polled)
        });
        match polled {
            Some(Poll::Ready(Ok(guard))) => Ok(Some(Inside::new(guard))),
            Some(Poll::Ready(Err(error))) => Err(exception(py, error)),
            Some(Poll::Pending) | None => Ok(None),
        }
    }

    /// Withdraws the request. If it was admitted meanwhile, leaves.
    fn withdraw(&self, py: Python<'_>) {
        py.detach(|| drop(self.take()));
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        if let Some(request) = self.take() {
            Python::attach(|py| py.detach(|| drop(request)));
        }
    }
}

struct Call(Py<PyAny>);

impl Wake for Call {
    fn wake(self: Arc<Self>) {
        // An interpreter that is about to end is not called. A closed loop raises an error and
        // needs no wake-up.
        Python::try_attach(|py| _ = self.0.call0(py));
    }
}
