//! Errors of rooms as exceptions of Python.

use grouplock_room::RoomError;
use pyo3::prelude::*;
use pyo3::types::PyAnyMethods;

/// The exception for an error, with the text that the program shows. An exception of a set-up or a
/// tear-down is raised unchanged.
pub(crate) fn exception(py: Python<'_>, error: RoomError) -> PyErr {
    let error = match error {
        RoomError::SetUp(raised) => match raised.downcast::<PyErr>() {
            Ok(raised) => return *raised,
            Err(other) => RoomError::SetUp(other),
        },
        RoomError::TearDown(raised) => match raised.downcast::<PyErr>() {
            Ok(raised) => return *raised,
            Err(other) => RoomError::TearDown(other),
        },
        error => error,
    };
    let name = match &error {
        RoomError::TimedOut { .. } => "Timeout",
        RoomError::Occupied { .. } => "Occupied",
        RoomError::Lost(_) => "Lost",
        RoomError::Forked => "Forked",
        RoomError::NoSuchRoom { .. } => "NoSuchRoom",
        RoomError::Unreachable { .. } => "Unreachable",
        RoomError::BadPlace { .. }
        | RoomError::BadRoomName { .. }
        | RoomError::BadOption { .. }
        | RoomError::SessionTooLong { .. }
        | RoomError::PolicyMismatch { .. }
        | RoomError::Unsupported { .. } => "Invalid",
        _ => "Error",
    };
    named(py, name, &error.to_string())
}

/// The error of a call on a holding that was left.
pub(crate) fn was_left(py: Python<'_>) -> PyErr {
    named(py, "Error", "the room was left; enter it again")
}

/// An exception of the class with this name.
fn named(py: Python<'_>, name: &str, text: &str) -> PyErr {
    let class = py.import("grouplock._errors").and_then(|module| module.getattr(name));
    match class.and_then(|class| class.call1((text,))) {
        Ok(exception) => PyErr::from_value(exception),
        Err(trouble) => trouble,
    }
}
