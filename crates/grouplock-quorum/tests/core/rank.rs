//! The order of requests.

use std::time::Duration;

use grouplock_quorum::{Precedence, Time};

const AGED: Precedence = Precedence::Aged { weight: Duration::from_secs(10) };

#[test]
fn a_step_of_priority_is_worth_its_weight_of_waiting() {
    let early = AGED.claim(Time::from_micros(5_000_000), 0);
    assert!(AGED.claim(Time::from_micros(14_999_999), 1) < early);
    assert!(AGED.claim(Time::from_micros(15_000_001), 1) > early);
    // The wait breaks the tie.
    assert!(AGED.claim(Time::from_micros(15_000_000), 1) > early);
}

#[test]
fn a_static_priority_is_never_caught_up_with() {
    let first = Precedence::Static.claim(Time::ZERO, 0);
    assert!(Precedence::Static.claim(Time::from_micros(u64::MAX), 1) < first);
    assert!(Precedence::Static.claim(Time::from_micros(1), 0) > first);
}

#[test]
fn extremes_do_not_overflow() {
    let heavy = Precedence::Aged { weight: Duration::MAX };
    let end = Time::from_micros(u64::MAX);
    assert!(heavy.claim(end, i32::MAX) < heavy.claim(Time::ZERO, i32::MIN));
}
