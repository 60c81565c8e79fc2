//! A machine that is set up for one colour at a time, and then serves any number of jobs of that
//! colour.
//!
//! Without a lock with sessions this needs a mutex, a condition variable, the colour, a count of
//! holders, and a rule for the next colour; docs/grouplock.md shows it. With one, it needs
//! `enter(colour)`.
//!
//! `cargo run --release -p grouplock --example threads`

use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use grouplock::{GroupLock, Policy};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Colour {
    Red,
    Green,
    Blue,
}

fn main() {
    for policy in [Policy::Fifo, Policy::Batch { passes: 6 }] {
        let machine = GroupLock::with_policy(policy, AtomicU32::new(0));
        let most = AtomicU32::new(0);
        println!("{policy:?}");
        std::thread::scope(|scope| {
            for job in 0..9 {
                let (machine, most) = (&machine, &most);
                let colour = [Colour::Red, Colour::Green, Colour::Blue][job % 3];
                scope.spawn(move || {
                    // One after the other, so that the numbers are in the order of arrival.
                    std::thread::sleep(Duration::from_millis(5 * job as u64));
                    let jobs = machine.enter(colour);
                    most.fetch_max(jobs.fetch_add(1, SeqCst) + 1, SeqCst);
                    println!("  job {job} is in: {colour:?}");
                    std::thread::sleep(Duration::from_millis(50));
                    jobs.fetch_sub(1, SeqCst);
                });
            }
            std::thread::sleep(Duration::from_millis(47));
            for phase in machine.snapshot().waiting {
                println!("  waiting: {} for {:?}", phase.waiters, phase.session);
            }
        });
        println!("  at most {} at a time\n", most.load(SeqCst));
    }
}
