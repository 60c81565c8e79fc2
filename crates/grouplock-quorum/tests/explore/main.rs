//! Explorations of small clusters: `docs/algorithms/gbp.md` lists the scenarios. `--nocapture`
//! shows how many states each has. `--ignored` runs the larger ones.

mod convicted;
mod larger;
mod model;
mod printed;
mod scenario;
mod state;

use std::time::{Duration, Instant};

use grouplock_quorum::{Admission, Coterie, MemberId, Precedence};
use model::explore;
use scenario::{Plan, Scenario, at};

/// Explores. All properties must hold, and the situations in `reaches` must be reached.
fn holds(what: &str, scenario: &Scenario, reaches: &[&str]) {
    let start = Instant::now();
    let verdict = explore(scenario);
    let seconds = start.elapsed().as_secs_f64();
    println!("| {what} | {} | {} | {seconds:.1} s |", verdict.states, verdict.depth);
    if let Some((property, way)) = verdict.violated.first() {
        panic!("{what}: not `{property}`:\n{way}");
    }
    for reached in reaches {
        assert!(verdict.reached.contains(reached), "{what}: `{reached}` was never reached");
    }
}

const ALL: &str = "all have been inside";
const YIELDS: &str = "somebody yields";
const FIRST: &str = "somebody is first";
const SHARE: &str = "two share";

fn triangle() -> Coterie {
    Coterie::plane(3).unwrap()
}

fn full(members: u16) -> Coterie {
    Coterie::new(vec![(0..members).map(MemberId).collect(); members.into()]).unwrap()
}

/// One process at each of three members. Later ones have a higher priority.
fn rising() -> [Plan; 3] {
    [at(0), at(1).priority(1), at(2).priority(2)]
}

fn two() -> [Plan; 2] {
    [at(0), at(1).priority(1)]
}

/// Three groups compete for one stage each. Messages may be reordered or arrive twice.
#[test]
fn three_groups() {
    let base = Scenario::new(triangle(), &rising());
    holds("3 groups, ordered", &Scenario { ordered: true, ..base.clone() }, &[ALL, YIELDS]);
    holds("3 groups, reordering", &base, &[ALL, YIELDS]);
    holds("3 groups, a message twice", &Scenario { duplicates: 1, ..base }, &[ALL, YIELDS]);
    holds("3 groups, equal", &Scenario::new(triangle(), &[at(0), at(1), at(2)]), &[ALL]);
    holds("3 groups, full quorums", &Scenario::new(full(3), &rising()), &[ALL, YIELDS]);
}

#[test]
fn three_groups_that_come_back() {
    let twice = [at(0).rounds(2), at(1).priority(1).rounds(2), at(2).priority(2)];
    holds("3 groups, 2+2+1 stages", &Scenario::new(triangle(), &twice), &[ALL, YIELDS]);
    let aged = Scenario {
        precedence: AGED,
        clock: true,
        ..Scenario::new(triangle(), &[at(0).rounds(2), at(1).priority(1), at(2).priority(2)])
    };
    holds("3 groups, aged ranks, 2+1+1 stages", &aged, &[ALL, YIELDS]);
}

#[test]
fn waiters_may_withdraw() {
    let scenario = Scenario { cancel: true, ..Scenario::new(triangle(), &rising()) };
    holds("3 groups, giving up", &scenario, &[ALL, YIELDS]);
    let scenario = Scenario { duplicates: 1, ..Scenario::new(triangle(), &two()) };
    let scenario = Scenario { cancel: true, ..scenario };
    holds("2 groups, giving up, a message twice", &scenario, &[ALL, YIELDS]);
}

#[test]
fn four_groups_with_quorums_of_three() {
    let majority = || Coterie::majority(4).unwrap();
    holds("4 members, q = 3, 3 compete", &Scenario::new(majority(), &rising()), &[ALL, YIELDS]);
}

#[test]
fn with_processes_at_a_distance() {
    let distant =
        |processes: &[Plan]| Scenario { direct: false, ..Scenario::new(triangle(), processes) };
    let shared = distant(&[at(0), at(0).stay(1), at(1).priority(1)]);
    holds("processes: 2 of one session, 1 other", &shared, &[ALL, YIELDS, SHARE]);
    let twice = Scenario { duplicates: 1, ..shared };
    holds("the same, a message twice", &twice, &[ALL, YIELDS, SHARE]);
    let same_home = distant(&[at(0), at(0).session(1).priority(2), at(1).priority(1)]);
    holds("processes: 2 sessions of one home, 1 other", &same_home, &[ALL, YIELDS]);
    let cancel = Scenario { cancel: true, ..distant(&[at(0), at(0), at(1).priority(1)]) };
    holds("processes: 2 of one session, 1 other, giving up", &cancel, &[ALL, YIELDS, SHARE]);
    let back = distant(&[at(0).rounds(2), at(1).priority(1)]);
    let back = Scenario { cancel: true, ..back };
    holds("processes: one comes back, giving up", &back, &[ALL, YIELDS]);
}

/// Admission in order: three groups, processes that share a session, and a restart.
#[test]
fn in_order() {
    let in_order = |scenario| Scenario { admission: Admission::InOrder, ..scenario };
    let groups = in_order(Scenario::new(triangle(), &rising()));
    holds("3 groups, in order", &groups, &[ALL, YIELDS]);
    holds("3 groups, in order, giving up", &Scenario { cancel: true, ..groups }, &[ALL, YIELDS]);
    let distant = |processes: &[Plan]| {
        in_order(Scenario { direct: false, ..Scenario::new(triangle(), processes) })
    };
    let shared = distant(&[at(0), at(0).priority(2), at(1).priority(1)]);
    holds("processes: 2 of one session, 1 between, in order", &shared, &[ALL, YIELDS, SHARE]);
    let giving_up = Scenario { cancel: true, ..shared };
    holds("the same, giving up", &giving_up, &[ALL, YIELDS, SHARE]);
    let base = Scenario { patience: 6, crashes: 1, ..Scenario::new(triangle(), &two()) };
    holds("2 groups, in order, a restart", &in_order(base), &[ALL, YIELDS]);
}

#[test]
fn messages_get_lost_and_members_start_again() {
    let base = Scenario { patience: 6, ..Scenario::new(triangle(), &two()) };
    holds("2 groups, a loss", &Scenario { losses: 1, ..base.clone() }, &[ALL, YIELDS]);
    holds("2 groups, two losses", &Scenario { losses: 2, ..base.clone() }, &[ALL, YIELDS]);
    let lost = Scenario { losses: 1, direct: false, ..base.clone() };
    holds("2 groups, processes, a loss", &lost, &[ALL, YIELDS]);
    holds("2 groups, a restart", &Scenario { crashes: 1, ..base.clone() }, &[ALL, YIELDS]);
    let distant = Scenario { crashes: 1, direct: false, ..base.clone() };
    holds("2 groups, processes, a restart", &distant, &[ALL, YIELDS]);
    holds("2 groups, timers too early", &Scenario { hasty: 2, ..base }, &[ALL, YIELDS]);
    let three = Scenario { patience: 6, crashes: 1, ..Scenario::new(triangle(), &rising()) };
    holds("3 groups, a restart", &three, &[ALL, YIELDS]);
}

/// No timer fires. The messages of a broken connection are sent again over the next connection.
#[test]
fn connections_break() {
    let base = Scenario { breaks: 1, ..Scenario::new(triangle(), &two()) };
    holds("2 groups, a connection breaks", &base, &[ALL, YIELDS]);
    let three = Scenario { breaks: 1, ..Scenario::new(triangle(), &rising()) };
    holds("3 groups, a connection breaks", &three, &[ALL, YIELDS]);
    let again = [at(0).rounds(2), at(1).priority(1)];
    let again = Scenario { breaks: 2, ..Scenario::new(triangle(), &again) };
    holds("2 groups, 2+1 stages, two connections break", &again, &[ALL, YIELDS]);
    let restart = |plans: &[Plan]| Scenario {
        crashes: 1,
        reconnect: true,
        ..Scenario::new(triangle(), plans)
    };
    holds("2 groups, a restart that is noticed", &restart(&two()), &[ALL, YIELDS]);
    let again = [at(0).rounds(2), at(1).priority(1)];
    holds("2 groups, 2+1 stages, a restart that is noticed", &restart(&again), &[ALL, YIELDS]);
}

/// A process that joins a stage under way is remembered like the first ones.
#[test]
fn a_home_starts_again_after_a_process_has_joined() {
    let joining = [at(0), at(0), at(1).priority(1)];
    let joining = Scenario { crashes: 1, patience: 6, ..Scenario::new(triangle(), &joining) };
    holds("2 of one session, 1 other, a restart", &joining, &[ALL, YIELDS, SHARE]);
    let noticed = Scenario { reconnect: true, patience: 0, ..joining };
    holds("the same, and it is noticed", &noticed, &[ALL, YIELDS, SHARE]);
}

/// A member stops before it has written what can wait.
#[test]
fn what_can_wait_is_lost() {
    let base = Scenario { late: true, crashes: 1, ..Scenario::new(triangle(), &two()) };
    let patient = Scenario { patience: 6, ..base.clone() };
    holds("2 groups, a restart, what can wait is lost", &patient, &[ALL, YIELDS]);
    let giving_up = Scenario { cancel: true, ..patient };
    holds("the same, giving up", &giving_up, &[ALL, YIELDS]);
    let noticed = Scenario { reconnect: true, ..base.clone() };
    holds("2 groups, a restart that is noticed, what can wait is lost", &noticed, &[ALL, YIELDS]);
    let joining = [at(0), at(0), at(1).priority(1)];
    let joining = Scenario { patience: 6, ..Scenario::new(triangle(), &joining) };
    let joining = Scenario { late: true, crashes: 1, ..joining };
    holds("2 of one session, 1 other, what can wait is lost", &joining, &[ALL, YIELDS, SHARE]);
}

/// Two processes of one session, of which one may give up, and one of each other session. When a
/// process leaves or gives up and no message is under way, the best waiter is next.
fn in_line(admission: Admission, precedence: Precedence) -> Scenario {
    let line = [at(0).priority(3), at(0).patient(), at(1).priority(1).patient()];
    let last = at(2).priority(2).patient();
    let base = Scenario::new(triangle(), &[line.as_slice(), &[last]].concat());
    let clock = precedence != Precedence::Static;
    Scenario { cancel: true, ordered: true, clock, admission, precedence, ..base }
}

#[test]
fn the_best_claim_is_first_also_when_others_withdraw() {
    let in_order = in_line(Admission::InOrder, Precedence::Static);
    holds("2 of one session, 2 others, one gives up", &in_order, &[ALL, YIELDS, FIRST]);
}

/// A step of priority is worth two requests.
const AGED: Precedence = Precedence::Aged { weight: Duration::from_micros(2) };

/// Requests grow older whenever a process asks or leaves. So an older request with a lower priority
/// can be the best. Links are ordered, as those of the transport: if RELEASE overtakes the next
/// REQUEST of its group, an arbiter votes before it knows the best.
#[test]
fn the_best_claim_is_first_with_aged_priorities_too() {
    let line = [at(0).priority(2), at(0).patient(), at(1).priority(1).patient()];
    for admission in [Admission::InOrder, Admission::Together] {
        let base = Scenario { cancel: true, ordered: true, ..Scenario::new(triangle(), &line) };
        let aged = Scenario { clock: true, admission, precedence: AGED, ..base };
        let what = format!("2 of one session, 1 other, aged, one gives up, {admission:?}");
        holds(&what, &aged, &[ALL, FIRST]);
        let equal = Scenario { precedence: Precedence::Aged { weight: Duration::ZERO }, ..aged };
        holds(&format!("{what}, first come"), &equal, &[ALL, FIRST]);
    }
}

/// Members that forget the age of requests, or their priority, are convicted.
#[test]
fn members_that_do_not_age_requests_are_convicted() {
    for mistaken in [Precedence::Static, Precedence::Aged { weight: Duration::ZERO }] {
        let mutant = in_line(Admission::InOrder, AGED);
        let violated = violated(&Scenario { mistaken: Some(mistaken), ..mutant });
        assert!(violated.contains(&"the best claim is first"), "{mistaken:?}: {violated:?}");
    }
}

/// Time passes, and all may be late.
#[test]
fn votes_are_leased() {
    let base = Scenario { passes: 1, ordered: true, ..Scenario::new(triangle(), &two()) };
    holds("2 groups, leases", &base, &[ALL, "a vote comes back"]);
    let dead = Scenario { deaths: 1, ..base };
    holds("2 groups, leases, a death", &dead, &[ALL, "a vote comes back"]);
}

/// A member loses its memory, asks the others, waits and goes on.
#[test]
fn memory_is_lost() {
    let base = Scenario { passes: 1, ordered: true, ..Scenario::new(triangle(), &two()) };
    let lost = Scenario { amnesias: 1, ..base };
    holds("2 groups, leases, a lost memory", &lost, &[ALL, "memory again"]);
    let violated = violated(&Scenario { rash: true, ..lost });
    assert!(violated.contains(&"mutual exclusion"), "{violated:?}");
}

/// What large explorations leave out decides nothing: with it, the same is reached and violated.
#[test]
fn large_explorations_leave_out_nothing_that_counts() {
    let twice = Scenario::new(triangle(), &[at(0).rounds(2), at(1).priority(1)]);
    let lossy = Scenario { losses: 1, patience: 6, ..Scenario::new(triangle(), &two()) };
    let forgetful = Scenario { crashes: 1, forgetful: true, ..Scenario::new(triangle(), &two()) };
    for scenario in [Scenario { cancel: true, ..twice }, lossy, forgetful] {
        let all = explore(&scenario);
        let large = explore(&Scenario { large: true, ..scenario });
        assert_eq!(large.violated.is_empty(), all.violated.is_empty());
        if all.violated.is_empty() {
            assert_eq!(large.reached, all.reached);
            assert!(large.states <= all.states, "{} of {}", large.states, all.states);
        }
    }
}

fn violated(scenario: &Scenario) -> Vec<&'static str> {
    explore(scenario).violated.iter().map(|(name, _)| *name).collect()
}

/// A member forgets a room that is unused there, but keeps the highest number. Others still
/// remember the room.
#[test]
fn rooms_are_retired() {
    let twice = [at(0).rounds(2), at(1).priority(1), at(2).priority(2)];
    let base = Scenario { ordered: true, retirements: 2, ..Scenario::new(triangle(), &twice) };
    let what = "3 groups, 2+1+1 stages, the room is forgotten twice";
    holds(what, &base, &[ALL, YIELDS, "forgotten"]);
    let violated = violated(&Scenario { forgetful: true, ..base });
    assert!(violated.contains(&"epochs grow"), "{violated:?}");
}

#[test]
fn a_member_that_forgets_breaks_mutual_exclusion() {
    let scenario = Scenario { crashes: 1, forgetful: true, ..Scenario::new(triangle(), &two()) };
    let violated = violated(&scenario);
    assert!(violated.contains(&"mutual exclusion"), "{violated:?}");
}
