//! Holdings.

use std::sync::{Mutex, PoisonError};

use grouplock_room::{Guard, RoomError, Standing};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::errors::{exception, was_left};

/// A holding. It leaves the room at the end of a `with`, by `leave`, or when the object is deleted.
#[pyclass(frozen, module = "grouplock")]
pub(crate) struct Inside {
    /// `None` after the room was left.
    guard: Mutex<Option<Guard<'static>>>,
    /// The session, as requested.
    #[pyo3(get)]
    session: String,
    /// Grows with every phase. All holders of a phase have the same.
    #[pyo3(get)]
    epoch: u64,
    /// The identifier of this holder in `status`.
    #[pyo3(get)]
    holder: String,
}

impl Inside {
    pub(crate) fn new(guard: Guard<'static>) -> Self {
        Inside {
            session: guard.session().to_owned(),
            epoch: guard.epoch(),
            holder: guard.holder().to_string(),
            guard: Mutex::new(Some(guard)),
        }
    }

    fn take(&self) -> Option<Guard<'static>> {
        self.guard.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Uses the guard, detached from the interpreter.
    fn with_guard<T: Send>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Option<Guard<'static>>) -> Result<T, RoomError> + Send,
    ) -> PyResult<T> {
        let done =
            py.detach(|| act(&mut self.guard.lock().unwrap_or_else(PoisonError::into_inner)));
        done.map_err(|error| exception(py, error))
    }

    fn standing(&self) -> Standing {
        let guard = self.guard.lock().unwrap_or_else(PoisonError::into_inner);
        guard.as_ref().map_or(Standing::Left, Guard::standing)
    }
}

#[pymethods]
impl Inside {
    /// Whether the holding is held: neither left nor lost.
    #[getter]
    fn held(&self, py: Python<'_>) -> bool {
        py.detach(|| self.standing()) == Standing::Held
    }

    /// Raises `Lost` if the holding was lost, and `Error` if the room was left.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        match py.detach(|| self.standing()) {
            Standing::Held => Ok(()),
            Standing::Lost(loss) => Err(exception(py, RoomError::Lost(loss))),
            Standing::Left => Err(was_left(py)),
        }
    }

    /// The `epoch`, `session`, `pid` and `command` of the last death inside, if deaths are not
    /// acknowledged. Otherwise None.
    #[getter]
    fn recovered<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let died = self.with_guard(py, |guard| Ok(guard.as_ref().and_then(Guard::recovered)))?;
        let Some(died) = died else { return Ok(None) };
        let fields = PyDict::new(py);
        fields.set_item("epoch", died.epoch)?;
        fields.set_item("session", died.session)?;
        fields.set_item("pid", died.pid)?;
        fields.set_item("command", died.command)?;
        Ok(Some(fields))
    }

    /// Acknowledges the deaths after the repair. They are not reported again.
    fn acknowledge(&self, py: Python<'_>) -> PyResult<()> {
        self.with_guard(py, |guard| guard.as_ref().map_or(Ok(()), Guard::acknowledge))
    }

    /// For a set-up with asyncio: the session for which the room is set up.
    #[pyo3(name = "_prepared")]
    fn prepared(&self, py: Python<'_>) -> PyResult<Option<String>> {
        self.with_guard(py, |guard| guard.as_ref().map_or(Ok(None), Guard::prepared))
    }

    /// For a set-up with asyncio: records the session for which the room is set up.
    #[pyo3(name = "_set_prepared")]
    fn set_prepared(&self, py: Python<'_>, session: Option<&str>) -> PyResult<()> {
        self.with_guard(py, |guard| {
            guard.as_ref().map_or(Ok(()), |guard| guard.set_prepared(session))
        })
    }

    /// For a set-up with asyncio: other requests of the session may enter now.
    #[pyo3(name = "_downgrade")]
    fn downgrade(&self, py: Python<'_>) -> PyResult<()> {
        self.with_guard(py, |slot| {
            let Some(guard) = slot.take() else { return Ok(()) };
            *slot = Some(guard.downgrade(&self.session)?);
            Ok(())
        })
    }

    /// For a tear-down with asyncio: returns whether this is the only holder. Then no other request
    /// enters.
    #[pyo3(name = "_try_alone")]
    fn try_alone(&self, py: Python<'_>) -> PyResult<bool> {
        self.with_guard(py, |guard| guard.as_ref().map_or(Ok(false), Guard::try_alone))
    }

    /// Leaves the room. A second call does nothing. Raises `Lost` if the holding had ended before.
    fn leave(&self, py: Python<'_>) -> PyResult<()> {
        let left = py.detach(|| self.take().map_or(Ok(()), Guard::leave));
        left.map_err(|error| exception(py, error))
    }

    /// Fails after the room was left: the block would run while other sessions may be inside.
    fn __enter__(slf: Py<Self>, py: Python<'_>) -> PyResult<Py<Self>> {
        match py.detach(|| slf.get().standing()) {
            Standing::Left => Err(was_left(py)),
            Standing::Held | Standing::Lost(_) => Ok(slf),
        }
    }

    /// An error of the block matters more than a loss of the holding.
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        _value: &Bound<'_, PyAny>,
        _traceback: &Bound<'_, PyAny>,
    ) -> PyResult<bool> {
        let left = self.leave(py);
        if kind.is_none() { left.map(|()| false) } else { Ok(false) }
    }

    fn __repr__(&self, py: Python<'_>) -> String {
        let held = if self.held(py) { "" } else { ", not held" };
        format!("<grouplock.Inside session={:?} epoch={}{held}>", self.session, self.epoch)
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        if let Some(guard) = self.take() {
            Python::attach(|py| py.detach(|| drop(guard)));
        }
    }
}
