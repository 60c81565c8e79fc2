//! Rooms between processes against what the operating system offers for the same purpose.
//!
//! One process takes a lock that others could take, and gives it back: nobody else is there. [`peers`] has the locks, [`page`]
//! the report.

pub mod page;
pub mod peers;

use std::time::{Duration, Instant};

use crate::uncontended::rounds::{Times, take_turns};
use crate::uncontended::subjects::Subject;

/// Lets every peer have a turn of about `turn` in each of `rounds` rounds: a system call takes as long as many passages of the others.
pub fn measure(peers: &mut [Subject], rounds: u32, turn: Duration) -> Times {
    let passages = |peer: &mut Subject| {
        let probe = 2_000;
        let start = Instant::now();
        peer.run(probe);
        let turns = turn.as_nanos() / start.elapsed().as_nanos().max(1);
        (turns as u64).max(1) * probe
    };
    let passages: Vec<u64> = peers.iter_mut().map(passages).collect();
    take_turns(&mut peers.iter_mut().collect::<Vec<_>>(), rounds, &passages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_can_be_measured() {
        let directory = grouplock_testing::Scratch::new();
        let mut peers = peers::all(directory.path()).expect("this machine has all of them");
        let times = measure(&mut peers, 2, Duration::ZERO);
        let page = page::Page { peers: &peers, times: &times, rounds: 2 }.to_string();
        for (at, peer) in peers.iter().enumerate() {
            assert!(times.nanoseconds(at).median > 0.0, "{}", peer.name);
            assert!(page.contains(&peer.name), "{page}");
        }
    }
}
