//! Rooms.

use std::num::NonZeroU32;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use grouplock_room::{Access, Entry, Place, Places, Policy, Progress, RoomError, RoomOptions};
use pyo3::exceptions::{PyRuntimeError, PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::entering::Entering;
use crate::errors::exception;
use crate::inside::Inside;

/// The time between two checks for Ctrl-C during a wait.
const GLANCE: Duration = Duration::from_millis(50);

fn places() -> Places {
    Places::new().with(grouplock_quorum::opener()).with(grouplock_etcd::opener())
}

/// The place, as in the program: `at`, else `GROUPLOCK_AT`, else the default of this machine.
fn place(at: Option<PathBuf>) -> Result<Place, RoomError> {
    let at = at.or_else(|| std::env::var_os("GROUPLOCK_AT").map(PathBuf::from));
    let place = match at {
        None => Place::local()?,
        Some(at) => match at.to_str() {
            Some(text) => text.parse()?,
            None => Place::Directory(at),
        },
    };
    Ok(match place {
        Place::Directory(path) => {
            // The process may change its directory.
            Place::Directory(std::path::absolute(&path).unwrap_or(path))
        }
        servers => servers,
    })
}

/// A room, as `grouplock.Room` needs it.
#[pyclass(frozen, module = "grouplock._native")]
pub(crate) struct Room {
    room: grouplock_room::Room,
    place: Place,
}

#[pymethods]
impl Room {
    #[new]
    #[pyo3(signature = (name, at, policy, existing, group, label))]
    fn new(
        py: Python<'_>,
        name: &str,
        at: Option<PathBuf>,
        policy: Option<&str>,
        existing: bool,
        group: bool,
        label: Option<String>,
    ) -> PyResult<Self> {
        let opened = py.detach(|| {
            let place = place(at)?;
            let mut options = RoomOptions::new().existing(existing);
            options.policy = policy.map(str::parse::<Policy>).transpose()?;
            options.command = label;
            if group {
                options.access = Access::Group;
            }
            Ok(Room { room: places().open(&place, name, &options)?, place })
        });
        opened.map_err(|error| exception(py, error))
    }

    /// The place as text: for a directory, an absolute path.
    #[getter]
    fn at(&self) -> String {
        self.place.to_string()
    }

    /// Whether the room is on servers. Then leaving takes time.
    #[getter]
    fn remote(&self) -> bool {
        !matches!(self.place, Place::Directory(_))
    }

    /// Enters, and waits at most as long as `how` says.
    fn enter(&self, py: Python<'_>, session: &str, how: How) -> PyResult<Inside> {
        let mut request = self.request(session, how)?.enter_async();
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        loop {
            let polled =
                py.detach(|| Pin::new(&mut request).poll(&mut Context::from_waker(&waker)));
            match polled {
                Poll::Ready(Ok(guard)) => return Ok(Inside::new(guard)),
                Poll::Ready(Err(error)) => return Err(exception(py, error)),
                Poll::Pending => py.detach(|| thread::park_timeout(GLANCE)),
            }
            if let Err(interrupt) = py.check_signals() {
                py.detach(|| drop(request));
                return Err(interrupt);
            }
        }
    }

    /// The same, with a set-up and a tear-down.
    fn enter_prepared(
        &self,
        py: Python<'_>,
        session: &str,
        how: How,
        set_up: Option<Py<PyAny>>,
        tear_down: Option<Py<PyAny>>,
    ) -> PyResult<Inside> {
        let mut interrupt = None;
        #[expect(
            clippy::redundant_closure_for_method_calls,
            reason = "the method itself is not general enough"
        )]
        let glance = |_: &Progress<'_>| match Python::attach(|py| py.check_signals()) {
            Ok(()) => ControlFlow::Continue(()),
            Err(raised) => {
                interrupt = Some(raised);
                ControlFlow::Break(())
            }
        };
        let call = |function: Py<PyAny>| -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            Ok(Python::attach(|py| function.call0(py).map(drop))?)
        };
        let entered = py.detach(|| -> PyResult<_> {
            let mut entry = self.request(session, how)?.progress(4 * GLANCE, glance);
            if let Some(function) = set_up {
                entry = entry.set_up(move || call(function));
            }
            if let Some(function) = tear_down {
                entry = entry.tear_down(move || call(function));
            }
            Ok(entry.enter_owned())
        })?;
        match (entered, interrupt) {
            (Ok(guard), _) => Ok(Inside::new(guard)),
            (Err(_), Some(interrupt)) => Err(interrupt),
            (Err(error), None) => Err(exception(py, error)),
        }
    }

    /// The same for asyncio. `prepared`: there is a set-up or a tear-down, which Python code runs.
    /// If the room cannot be set up, the request is refused with the usual message.
    fn begin(&self, session: &str, how: How, prepared: bool) -> PyResult<Entering> {
        let entry = self.request(session, how)?;
        let entry = if prepared && !self.room.capabilities().set_up {
            entry.set_up(|| Ok(()))
        } else {
            entry
        };
        Ok(Entering::new(entry.enter_async()))
    }

    /// The text of `grouplock status --json`.
    fn status(&self, py: Python<'_>) -> PyResult<String> {
        let snapshot = py.detach(|| self.room.snapshot()).map_err(|error| exception(py, error))?;
        serde_json::to_string(&snapshot).map_err(|error| {
            PyRuntimeError::new_err(format!("the status cannot be written: {error}"))
        })
    }
}

/// The options of an entry: the named tuple `How` of Python.
#[derive(Clone, Copy)]
struct How {
    timeout: Option<f64>,
    priority: i32,
    expected: Option<f64>,
    alone: bool,
    at_most: Option<i64>,
}

impl<'py> FromPyObject<'_, 'py> for How {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        Ok(How {
            timeout: field(given, "timeout", "seconds were")?,
            priority: field(given, "priority", "a whole number of at most 32 bits was")?,
            expected: field(given, "expected", "seconds were")?,
            alone: field(given, "alone", "True or False was")?,
            at_most: field(given, "at_most", "a whole number was")?,
        })
    }
}

/// A field of a named tuple, or an error that names it.
fn field<'py, T>(given: Borrowed<'_, 'py, PyAny>, name: &str, expected: &str) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    let value = given.getattr(name)?;
    value.extract().map_err(|_| {
        let value = value.repr().map_or_else(|_| "this".to_owned(), |text| text.to_string());
        PyTypeError::new_err(format!("{name} cannot be {value}: {expected} expected"))
    })
}

impl Room {
    fn request<'r, 's>(&'r self, session: &'s str, how: How) -> PyResult<Entry<'r, 's>> {
        let mut entry = self.room.request(session).priority(how.priority);
        match how.timeout {
            Some(0.0) => entry = entry.no_wait(),
            Some(time) => entry = entry.timeout(seconds("timeout", time)?),
            None => {}
        }
        if let Some(time) = how.expected {
            entry = entry.expected(seconds("expected", time)?);
        }
        if how.alone {
            entry = entry.alone();
        }
        if let Some(holders) = how.at_most {
            let number = u32::try_from(holders).ok().and_then(NonZeroU32::new);
            let bad = || format!("at_most cannot be {holders}: 1 or more was expected");
            entry = entry.at_most(number.ok_or_else(|| PyValueError::new_err(bad()))?);
        }
        Ok(entry)
    }
}

fn seconds(what: &str, time: f64) -> PyResult<Duration> {
    let bad = || PyValueError::new_err(format!("{what} cannot be {time}: seconds were expected"));
    Duration::try_from_secs_f64(time).map_err(|_| bad())
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The names of the rooms in a place.
#[pyfunction]
#[pyo3(signature = (at=None))]
pub(crate) fn rooms(py: Python<'_>, at: Option<PathBuf>) -> PyResult<Vec<String>> {
    let listed = py.detach(|| places().list(&place(at)?));
    let names = listed.map_err(|error| exception(py, error))?;
    Ok(names.iter().map(ToString::to_string).collect())
}

/// Removes a room that is not in use.
#[pyfunction]
#[pyo3(signature = (name, at=None))]
pub(crate) fn remove(py: Python<'_>, name: &str, at: Option<PathBuf>) -> PyResult<()> {
    let removed = py.detach(|| places().remove(&place(at)?, name));
    removed.map_err(|error| exception(py, error))
}
