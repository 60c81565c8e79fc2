//! The native part of the Python package `grouplock`: rooms. Python code does the rest.
//!
//! Every call that may take long runs detached from the interpreter. This also prevents a deadlock:
//! a thread may call a waker, which needs the interpreter, while it holds a lock that this call
//! needs.

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
