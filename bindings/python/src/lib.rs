//! The native part of the Python package `grouplock`: rooms, without what Python says better.
//!
//! Whatever may take longer than a moment runs detached from the interpreter. This also keeps it from deadlock: a waker,
//! which needs the interpreter, may be called by a thread that has locked something that we are about to lock.

mod entering;
mod errors;
mod inside;
mod room;

use pyo3::prelude::*;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::entering::Entering;
    #[pymodule_export]
    use crate::inside::Inside;
    #[pymodule_export]
    use crate::room::{Room, remove, rooms};

    #[pymodule_export]
    #[expect(non_upper_case_globals, reason = "Python's name")]
    const version: &str = env!("CARGO_PKG_VERSION");
}
