//! Rooms on etcd while servers, networks and clients fail.
//!
//! Workers in three processes enter sessions of one room all the time. They use a [resource] that
//! refuses stale epochs. After each [fault] the room has to go on within [`stage::BOUND`]. In the
//! end it has to be empty. What holders believed must have been true: see
//! [`overlaps`](grouplock_testing::overlaps).

mod clock;
mod crew;
mod fault;
mod record;
mod resource;
mod stage;
mod table;
mod worker;

use fault::Fault;
use stage::{Outcome, Stage};

/// Injects a fault so many times on one cluster. `None`, with a notice, if the machine does not
/// allow it.
fn run(fault: Fault, times: usize) -> Option<Outcome> {
    let mut stage = Stage::new(fault.cluster()?);
    for _ in 0..times {
        fault.inject(&mut stage);
    }
    let outcome = stage.finish();
    // Otherwise there was nothing to check.
    assert!(outcome.phases > 10 && outcome.uses as usize > outcome.phases, "{outcome:?}");
    Some(outcome)
}

/// Not a test: what the other processes run.
#[test]
fn actor() {
    crew::act();
}

macro_rules! faults {
    ($($name:ident => $fault:ident,)*) => {
        $(
            #[test]
            fn $name() {
                run(Fault::$fault, 1);
            }
        )*
    };
}

faults! {
    the_leader_is_killed => LeaderKilled,
    the_leader_is_stopped => LeaderStopped,
    the_leader_is_cut_off_from_the_members => LeaderCutFromMembers,
    the_leader_is_cut_off_from_all => LeaderCutFromAll,
    a_follower_is_killed => MemberKilled,
    all_members_are_killed => AllKilled,
    the_only_server_is_restarted => ServerRestarted,
    the_history_is_compacted => Compaction,
    a_client_is_killed_inside => ClientKilled,
    a_client_is_stopped_inside => ClientStopped,
    a_client_is_stopped_in_the_queue => WaiterStopped,
    leases_are_revoked => LeaseRevoked,
}

/// Each fault many times; prints the table, and writes `docs/etcd-faults.md` if
/// `GROUPLOCK_FAULT_TABLE` names it.
#[test]
#[ignore = "takes minutes; `cargo xtask soak` runs it"]
fn fault_table() {
    let times = std::env::var("GROUPLOCK_FAULTS").ok();
    let times = times.map_or(5, |text| text.parse().expect("GROUPLOCK_FAULTS is a number"));
    let mut table = table::Table::new(times);
    // Selects some of the faults.
    let only = std::env::var("GROUPLOCK_FAULT").unwrap_or_default();
    for fault in Fault::ALL.into_iter().filter(|fault| format!("{fault:?}").contains(&only)) {
        let outcome = run(fault, times);
        println!("{fault:?}: {outcome:?}");
        table.add(fault, outcome);
    }
    println!("{table}");
    if let Some(path) = std::env::var_os("GROUPLOCK_FAULT_TABLE") {
        std::fs::write(path, table.to_string()).expect("the page can be written");
    }
}
