//! The home of a session.

use grouplock_quorum::home;

#[test]
fn sessions_are_spread_evenly() {
    let mut at = [0_u32; 7];
    for session in 0..7000 {
        at[home(&format!("session {session}"), 7).index()] += 1;
    }
    assert!(at.iter().all(|count| (850..1150).contains(count)), "{at:?}");
}

/// Members that disagree about a home would not share a session. So this function never changes.
#[test]
fn the_home_of_a_session_stays_what_it_was() {
    let homes = ["build", "release", "", "Ωmega"].map(|session| home(session, 7).0);
    assert_eq!(homes, [0, 0, 3, 5]);
}
