//! Every lock does what the harness expects, and a whole run makes a whole page.

use std::time::{Duration, Instant};

use grouplock_testing::svg::well_formed;

use crate::comparison::lock::Kind;
use crate::comparison::plan::{Plan, Size, excluding, halves, sharing};
use crate::comparison::throughput::Round;
use crate::comparison::work::Length;
use crate::comparison::workload::{Choice, Sessions, Workload};
use crate::comparison::{alone, competitor, goals, json, page, plots, run};

fn round(workload: Workload) -> Round {
    Round { workload, duration: Duration::from_millis(10), number: 3 }
}

#[test]
fn no_lock_admits_two_sessions_together() {
    let (threads, choice) = (4, Choice::Uniform);
    let (sessions, inside, outside) = (Sessions::Shared(3), Length::Us1, Length::Nothing);
    let mixed = Workload { threads, sessions, choice, inside, outside, busy: false };
    for lock in competitor::all() {
        for workload in [mixed, halves(4), excluding(3)] {
            // This fails if two conflicting passages overlap.
            let seen = (lock.observe)(&round(workload)).unwrap_or_else(|error| panic!("{error}"));
            assert!(seen.passages >= threads, "{} in {workload}", lock.name);
        }
    }
}

#[test]
fn every_lock_shares_what_its_kind_shares() {
    let asleep = |workload| Workload { inside: Length::Ms2, ..workload };
    for lock in competitor::all() {
        // On a busy machine three threads may seldom meet, so there is a long deadline.
        let most = |workload, expected| {
            let deadline = Instant::now() + Duration::from_mins(1);
            loop {
                let seen = (lock.observe)(&round(asleep(workload)));
                let most = seen.unwrap_or_else(|error| panic!("{error}")).inside_max;
                if most >= expected || Instant::now() > deadline {
                    return most;
                }
            }
        };
        let expected = if lock.kind == Kind::Mutual { 1 } else { 3 };
        assert_eq!(most(sharing(3), expected), expected, "{} with one session", lock.name);
        assert_eq!(most(excluding(3), 1), 1, "{} with a session each", lock.name);
    }
}

#[test]
fn every_lock_counts_entries_of_all_threads() {
    for lock in competitor::all() {
        let counted = (lock.count)(&round(Workload { outside: Length::Us1, ..sharing(2) }));
        assert_eq!(counted.entries.len(), 2, "{}", lock.name);
        assert!(counted.rates()[0] > 0.0, "{}", lock.name);
        assert!(counted.elapsed >= Duration::from_millis(10), "{}", lock.name);
    }
}

#[test]
fn a_run_makes_a_whole_page() {
    let plan = Plan::new(Size::Smoke);
    let locks = competitor::all();
    let results = run::run(&plan, &locks, alone::all(), None, |_| ()).expect("locks exclude");
    let goals = goals::all(&results);
    let plots = plots::all(&results);
    for plot in &plots {
        assert_eq!(well_formed(&plot.svg.to_string()), Ok(()), "{}", plot.file);
    }
    assert!(plots.iter().any(|plot| plot.file == "starvation.svg"));
    let page = page::text(&results, &goals, &plots);
    for lock in &locks {
        let rows = page.lines().filter(|line| line.starts_with(&format!("| {} |", lock.name)));
        // In each workload twice, and in the probe.
        assert!(rows.count() >= 7, "{} is missing somewhere", lock.name);
    }
    for line in page.lines().filter(|line| line.starts_with('|')) {
        assert!(!line.contains("NaN") && !line.contains("inf"), "{line}");
    }
    let text = json::report(&results, &goals).expect("figures are numbers");
    let read: serde_json::Value = serde_json::from_str(&text).expect("it is JSON");
    let scores = &read["results"]["seasons"][0]["matches"][0]["scores"];
    assert_eq!(scores.as_array().map(Vec::len), Some(locks.len()));
}
