//! The common parts of the small locks in these tests.

use grouplock_algorithms::claims::{Bound, Claims, Exit, Growth, Limit, Text};

/// The claims of the small locks. Some are wrong.
pub(crate) fn claims(name: &'static str, text: Text) -> Claims {
    Claims {
        name,
        source: "nobody",
        text,
        exit: Exit::BOUNDED,
        rmr_cc: Bound::of(Growth::Unbounded),
        rmr_dsm: Bound::of(Growth::Unbounded),
        space: Growth::Constant,
        processes: Limit::Fixed(8),
        ..Claims::MUTEX
    }
}
