//! Tens of members and thousands of processes, from seeds.

// The example uses the rest.
#[allow(dead_code)]
#[path = "../../examples/simulate/simulation.rs"]
mod simulation;

use std::time::Duration;

use grouplock_quorum::{Coterie, Precedence, Settings, Time, home};

use simulation::{Load, Report, run};

fn sound(report: &Report) {
    assert_eq!(report.violations, Vec::<String>::new());
}

#[test]
fn an_idle_stage_costs_what_the_paper_says() {
    for members in [3, 7, 13, 21, 31] {
        for processes in [1, 2, 10, 100] {
            let coterie = Coterie::plane(members).unwrap();
            let q = coterie.largest_quorum() as u64;
            let report = run(&Load { processes, ..Load::quiet(coterie) }, 1);
            sound(&report);
            assert_eq!((report.entries, report.stages), (processes, 1));
            assert_eq!(report.messages(), 3 * processes + 3 * (q - 1), "{members} {processes}");
            assert_eq!(report.most_inside as u64, processes);
        }
    }
}

/// A stage takes 3l + 3(q−1) messages. The competition takes I inquiries, N notices, and two
/// messages for each yield.
#[test]
fn a_contended_stage_costs_what_was_counted() {
    let mut all_yields = 0;
    for (seed, members) in [(1, 3), (2, 7), (3, 13), (4, 31)] {
        let coterie = Coterie::plane(members).unwrap();
        let q = coterie.largest_quorum() as u64;
        let report = run(
            &Load {
                processes: 300,
                sessions: 40,
                rounds: 5,
                think: Duration::from_millis(50),
                delay: (Duration::from_micros(100), Duration::from_millis(5)),
                ..Load::quiet(coterie)
            },
            seed,
        );
        sound(&report);
        assert_eq!(report.entries, 1500);
        let (inquiries, yields) = (report.sent("inquire"), report.sent("relinquish"));
        let competition = inquiries + 2 * yields + report.sent("contested");
        let expected = 3 * report.entries + 3 * (q - 1) * report.stages + competition;
        assert!(yields <= inquiries);
        all_yields += yields;
        assert_eq!(report.messages(), expected, "{report:?}");
    }
    assert!(all_yields > 0, "nobody competed");
}

fn hostile(members: u16, processes: u64) -> Load {
    Load::hostile(Coterie::smallest(members).unwrap(), processes)
}

#[test]
fn loss_copies_reordering_and_deaths_break_nothing_and_stop_nobody() {
    let mut deaths = 0;
    for (seed, members, processes) in [(1, 3, 50), (2, 7, 200), (3, 13, 500), (4, 31, 2000)] {
        let report = run(&hostile(members, processes), seed);
        sound(&report);
        assert!(report.waiting.is_empty(), "{members}: {:?} wait", report.waiting);
        // A process that lost its holding has its entry counted. It does not get the holding again.
        assert_eq!(report.entries, processes * 4, "{members}");
        deaths += report.deaths;
    }
    assert!(deaths > 0, "nobody died");
}

/// Members stop and come back, every third time without their saved data.
#[test]
fn members_that_stop_and_lose_their_disks_break_nothing_and_stop_nobody() {
    let (mut restarts, mut lost_disks, mut deaths) = (0, 0, 0);
    let sizes = [(3, 20), (7, 30), (13, 40)];
    for (seed, (members, processes)) in (1..=18).zip(sizes.into_iter().cycle()) {
        let load = Load {
            // The stay is longer than a vote lasts, so that a process is inside when a vote is
            // forgotten.
            stay: Duration::from_millis(1500),
            sessions: 5,
            deaths: 50,
            restarts: Duration::from_millis(500),
            lost_disks: 333,
            ..hostile(members, processes)
        };
        let report = run(&load, seed);
        sound(&report);
        assert!(report.waiting.is_empty(), "{members}: {:?} wait", report.waiting);
        let Report { restarts: again, lost_disks: lost, alarms, losses, .. } = report;
        println!(
            "{members} members: {again} restarts, {lost} lost disks, {} deaths told, {alarms} alarms, {losses} lost holdings",
            report.deaths
        );
        restarts += again;
        lost_disks += lost;
        deaths += report.deaths;
    }
    assert!(restarts > 10 && lost_disks > 5 && deaths > 3, "{restarts}, {lost_disks}, {deaths}");
}

/// Without lost messages, a death is reported once and nothing else is reported.
#[test]
fn deaths_are_reported_once() {
    let mut deaths = 0;
    for (seed, members) in [(1, 3), (2, 7), (3, 13)] {
        let load = Load { loss: 0, duplication: 0, deaths: 30, ..hostile(members, 100) };
        let report = run(&load, seed);
        sound(&report);
        assert_eq!(report.alarms, 0, "{members}: told without a death");
        deaths += report.deaths;
    }
    assert!(deaths > 10, "few died");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let load = hostile(7, 100);
    assert_eq!(run(&load, 5), run(&load, 5));
    assert_ne!(run(&load, 5).trace, run(&load, 6).trace);
}

fn urgent_and_patient(precedence: Precedence) -> Report {
    let load = Load {
        settings: Settings { precedence, ..Load::quiet(Coterie::plane(7).unwrap()).settings },
        processes: 60,
        sessions: 6,
        priorities: vec![0, 5, 5, 5, 5, 5],
        rounds: u32::MAX,
        think: Duration::from_millis(5),
        until: Time::from_micros(60_000_000),
        ..Load::quiet(Coterie::plane(7).unwrap())
    };
    run(&load, 9)
}

#[test]
fn static_priorities_starve_and_aging_does_not() {
    let starving = urgent_and_patient(Precedence::Static);
    sound(&starving);
    let aged = urgent_and_patient(Precedence::Aged { weight: Duration::from_millis(100) });
    sound(&aged);
    let longest = |report: &Report| report.waits[&0].last().copied().unwrap_or(0);
    assert!(longest(&starving) > 30_000_000, "{}", longest(&starving));
    assert!(longest(&aged) < 3_000_000, "{}", longest(&aged));
}

/// A group that is inside also learns of requests that rank after it. Otherwise a stream of
/// newcomers would keep it inside.
#[test]
fn a_stream_of_newcomers_does_not_keep_the_others_out() {
    // With one home they would know of each other without a message.
    assert_ne!(home("session 0", 7), home("session 1", 7));
    let load = Load {
        processes: 101,
        sessions: 2,
        rounds: 40,
        think: Duration::from_millis(5),
        stay: Duration::from_millis(20),
        until: Time::from_micros(60_000_000),
        ..Load::quiet(Coterie::plane(7).unwrap())
    };
    let report = run(&load, 3);
    sound(&report);
    assert!(report.waiting.is_empty());
    let longest = report.waits[&0].last().copied().unwrap_or(0);
    assert!(longest < 200_000, "{longest}");
}
