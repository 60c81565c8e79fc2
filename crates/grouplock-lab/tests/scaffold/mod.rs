//! The common parts of the small locks in these tests.

use grouplock_algorithms::claims::{
    Bound, Claim, Claims, Entering, Exit, Growth, Kind, Limit, Text,
};

/// The claims of the small locks. Some are wrong.
pub(crate) fn claims(name: &'static str, text: Text) -> Claims {
    Claims {
        name,
        source: "nobody",
        text,
        kind: Kind::Mutual,
        mutual_exclusion: Claim::Yes,
        deadlock_freedom: Claim::Yes,
        starvation_freedom: Claim::No,
        fcfs: Claim::No,
        strong_fifo: Claim::No,
        fife: Claim::NotApplicable,
        entering: Entering::alone(Claim::No),
        exit: Exit::BOUNDED,
        group_bounded_abort: Claim::NotApplicable,
        rmr_cc: Bound::of(Growth::Unbounded),
        rmr_dsm: Bound::of(Growth::Unbounded),
        space: Growth::Constant,
        primitives: &[],
        processes: Limit::Fixed(8),
        sessions: Limit::NotApplicable,
        bounded_registers: Claim::No,
    }
}
