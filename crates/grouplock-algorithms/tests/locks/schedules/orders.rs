//! The orders that C. Chu's lecture notes (2009) work out for Keane and Moir's lock and for
//! Petrovic's. Six processes arrive one after another. The first two enter at once, and the others
//! wait.

use std::collections::BTreeMap;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::Duration;

use grouplock_algorithms::Group;
use grouplock_algorithms::keane_moir::KeaneMoir;
use grouplock_algorithms::petrovic::{Bounded, Petrovic, Unbounded};
use grouplock_algorithms::raw::RawGroup;

use super::staged::{Staged, tell_of_wait};

/// Much longer than a step takes, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// The processes in their order of arrival, and their sessions.
const COMING: [(char, u64); 6] = [('i', 1), ('j', 1), ('k', 2), ('l', 2), ('m', 1), ('n', 2)];

/// Lets the processes enter, one group of `together` after the other. A group leaves when it is
/// complete, and only then the next group may enter. Each process stays inside until its group may
/// leave, so a process that enters too early is found in the place of another.
fn go_in<G: RawGroup<Staged>>(together: &[&str]) {
    let lock = Group::<G, Staged>::new(COMING.len()).expect("six are possible");
    let (tell_of_entry, entry) = mpsc::channel();
    thread::scope(|scope| {
        let mut leave = BTreeMap::new();
        for (name, session) in COMING {
            let mut process = lock.process().expect("there is room for six");
            let tell_of_entry: Sender<char> = tell_of_entry.clone();
            let (may_wait, waits) = mpsc::channel();
            let (tell_to_leave, may_leave): (Sender<()>, Receiver<()>) = mpsc::channel();
            leave.insert(name, tell_to_leave);
            let first_group = together[0].contains(name);
            scope.spawn(move || {
                if !first_group {
                    tell_of_wait(may_wait);
                }
                let inside = process.enter(session).expect("the session is right");
                tell_of_entry.send(name).expect("the test outlives its processes");
                // Stays inside until the other end is dropped.
                _ = may_leave.recv();
                drop(inside);
            });
            // The next process arrives when this one is inside or waits.
            if first_group {
                assert_eq!(entry.recv_timeout(PATIENCE), Ok(name), "it has nothing to wait for");
            } else {
                assert_eq!(waits.recv_timeout(PATIENCE), Ok(()), "{name} does not wait");
            }
        }
        for (at, group) in together.iter().enumerate() {
            let mut came = Vec::new();
            while at > 0 && came.len() < group.len() {
                came.push(entry.recv_timeout(PATIENCE).expect("somebody else comes"));
            }
            came.sort_unstable();
            assert!(at == 0 || came.iter().copied().eq(group.chars()), "{came:?} for {group}");
            leave.retain(|name, _| !group.contains(*name));
        }
    });
}

#[test]
fn keane_and_moirs_lock_captures() {
    go_in::<KeaneMoir<Staged>>(&["ij", "kln", "m"]);
}

#[test]
fn petrovics_lock_is_first_come_first_served() {
    go_in::<Petrovic<Staged, Bounded>>(&["ij", "kl", "m", "n"]);
    go_in::<Petrovic<Staged, Unbounded>>(&["ij", "kl", "m", "n"]);
}
