//! The counterexamples to the printed algorithms, step by step, and the same steps on the corrected
//! ones. `orders` has the examples that a source works out.

mod figure_3;
mod orders;
mod staged;

use std::sync::mpsc;
use std::time::Duration;

use grouplock_algorithms::black_white_bakery::BlackWhiteBakery;
use grouplock_algorithms::handover::Handover;
use grouplock_algorithms::maor_taubenfeld::MaorTaubenfeld;
use grouplock_algorithms::raw::{RawGroup, RawMutex};
use grouplock_algorithms::{Group, Mutual};

use self::figure_3::Figure3;
use self::staged::{Staged, tell_of_doorway_end, unless_it_must_wait};

/// Longer than any step here takes, even on a busy machine.
const LATE: Duration = Duration::from_secs(60);

const S: u64 = 1;
const T: u64 = 2;

/// Runs the table in the documentation of `maor_taubenfeld`, in which no two steps overlap. Returns
/// whether r gets into session t while b and p are in session s.
fn r_gets_in_beside_b_and_p<G: RawGroup<Staged>>() -> bool {
    let lock = Group::<G, Staged>::new(4).expect("four are possible");
    let process = || lock.process().expect("there is room for four");
    let (mut a, mut b, mut p, mut r) = (process(), process(), process(), process());

    let a_inside = a.enter(S).expect("the session is right");
    let b_inside = b.enter(S).expect("the session is right");
    drop(p.enter(S).expect("the session is right")); // with p's first node
    drop(p.enter(S).expect("the session is right")); // with p's second node
    let p_inside = p.enter(S).expect("the session is right"); // with its first node again
    drop(a_inside); // if the queue has lost count it looks empty now

    let r_inside = unless_it_must_wait(|| r.enter(T).expect("the session is right"));
    let got_in = r_inside.is_some();
    // No process leaves: what the wrong queue does next is not tested.
    std::mem::forget((b_inside, p_inside, r_inside));
    got_in
}

#[test]
fn the_printed_algorithm_lets_two_sessions_in() {
    assert!(
        r_gets_in_beside_b_and_p::<MaorTaubenfeld<Staged>>(),
        "the algorithm as printed no longer breaks: is it still the one that was printed?"
    );
}

#[test]
fn handover_keeps_the_second_session_out() {
    assert!(!r_gets_in_beside_b_and_p::<Handover<Staged>>());
}

/// The same with three processes: a itself returns and requests t.
fn a_gets_in_beside_b_and_p<G: RawGroup<Staged>>() -> bool {
    let lock = Group::<G, Staged>::new(3).expect("three are possible");
    let process = || lock.process().expect("there is room for three");
    let (mut a, mut b, mut p) = (process(), process(), process());

    let a_inside = a.enter(S).expect("the session is right");
    let b_inside = b.enter(S).expect("the session is right");
    drop(p.enter(S).expect("the session is right"));
    drop(p.enter(S).expect("the session is right"));
    let p_inside = p.enter(S).expect("the session is right");
    drop(a_inside);

    let a_inside = unless_it_must_wait(|| a.enter(T).expect("the session is right"));
    let got_in = a_inside.is_some();
    std::mem::forget((b_inside, p_inside, a_inside));
    got_in
}

#[test]
fn three_processes_are_enough() {
    assert!(a_gets_in_beside_b_and_p::<MaorTaubenfeld<Staged>>());
    assert!(!a_gets_in_beside_b_and_p::<Handover<Staged>>());
}

/// One process waits with a white ticket while another leaves and returns with a black one. Returns
/// whether both are inside then.
fn both_colours_get_in<L: RawMutex<Staged>>() -> bool {
    let lock = Mutual::<L, Staged>::new(2).expect("two are possible");
    let mut first = lock.process().expect("there is room for two");
    let mut second = lock.process().expect("there is room for two");

    std::thread::scope(|scope| {
        let held = first.acquire().expect("nothing was leaked");
        let (tell_of_doorway, doorway) = mpsc::channel();
        let (tell_of_entry, entry) = mpsc::channel();
        let (leave, may_leave) = mpsc::channel::<()>();
        scope.spawn(move || {
            tell_of_doorway_end(tell_of_doorway);
            let held = second.acquire().expect("nothing was leaked");
            tell_of_entry.send(()).expect("the test waits for this");
            // Stays inside until the other end is dropped.
            _ = may_leave.recv();
            drop(held);
        });
        doorway.recv_timeout(LATE).expect("the second process takes a ticket");
        drop(held);
        entry.recv_timeout(LATE).expect("the second process gets in");
        let again = unless_it_must_wait(|| first.acquire().expect("nothing was leaked"));
        let got_in = again.is_some();
        drop(leave);
        drop(again);
        got_in
    })
}

#[test]
fn our_copy_of_the_figure_lets_two_in() {
    assert!(both_colours_get_in::<Figure3<Staged>>());
}

#[test]
fn the_black_white_bakery_waits_for_the_other_colour() {
    assert!(!both_colours_get_in::<BlackWhiteBakery<Staged>>());
}
