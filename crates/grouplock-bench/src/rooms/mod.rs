//! Rooms between processes against what the operating system offers for the same purpose.
//!
//! One process takes a lock that others could take, and gives it back: nobody else is there. [`peers`] has the locks, [`page`]
//! the report.

pub mod page;
pub mod peers;

use std::time::{Duration, Instant};

use peers::Peer;

/// The times of a passage in nanoseconds, a row per peer, a column per round.
#[derive(Clone, Debug)]
pub struct Figures {
    /// The names of the rows.
    pub names: Vec<&'static str>,
    rows: Vec<Vec<f64>>,
}

/// Lets every peer run a batch in each of `rounds` rounds, each round beginning with another, so that a disturbance hits all
/// alike.
pub fn measure(peers: &mut [Peer], rounds: usize, time_per_turn: Duration) -> Figures {
    // Batches of about the same time for all: a system call takes as long as many passages of the others.
    let passages: Vec<u64> = peers
        .iter_mut()
        .map(|peer| {
            let probe = 2_000;
            let start = Instant::now();
            peer.run(probe);
            let turns = time_per_turn.as_nanos() / start.elapsed().as_nanos().max(1);
            (turns as u64).max(1) * probe
        })
        .collect();
    let mut rows = vec![Vec::new(); peers.len()];
    for first in (0..peers.len()).cycle().take(rounds) {
        for turn in (first..peers.len()).chain(0..first) {
            let start = Instant::now();
            peers[turn].run(passages[turn]);
            rows[turn].push(start.elapsed().as_nanos() as f64 / passages[turn] as f64);
        }
    }
    Figures { names: peers.iter().map(|peer| peer.name).collect(), rows }
}

/// The middle of a sample, and how far nine tenths of it spread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// As many lie below as above.
    pub median: f64,
    /// One in ten lies below.
    pub low: f64,
    /// One in ten lies above.
    pub high: f64,
}

impl Sample {
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_by(f64::total_cmp);
        let last = values.len().saturating_sub(1);
        let at = |tenths: usize| values.get((last * tenths + 5) / 10).copied().unwrap_or(f64::NAN);
        Sample { median: at(5), low: at(1), high: at(9) }
    }
}

impl Figures {
    /// The time of a passage in nanoseconds.
    pub fn nanoseconds(&self, peer: usize) -> Sample {
        Sample::of(self.rows[peer].clone())
    }

    /// How many times as fast as `other` `peer` is, from round to round.
    pub fn times_faster(&self, peer: usize, other: usize) -> Sample {
        let rounds = self.rows[other].iter().zip(&self.rows[peer]);
        Sample::of(rounds.map(|(other, peer)| other / peer).collect())
    }

    /// The row of that name.
    pub fn row(&self, name: &str) -> Option<usize> {
        self.names.iter().position(|known| *known == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_taken_within_a_round() {
        let rows = vec![vec![1.0, 10.0, 100.0], vec![20.0, 200.0, 2000.0]];
        let figures = Figures { names: vec!["one", "other"], rows };
        assert_eq!(figures.times_faster(0, 1), Sample { median: 20.0, low: 20.0, high: 20.0 });
        assert_eq!(figures.nanoseconds(0), Sample { median: 10.0, low: 1.0, high: 100.0 });
        assert_eq!(figures.row("other"), Some(1));
    }

    #[test]
    fn every_peer_can_be_measured() {
        let directory = peers::Scratch::new().expect("a directory");
        let mut peers = peers::all(&directory).expect("this machine has all of them");
        let figures = measure(&mut peers, 2, Duration::ZERO);
        assert!(
            figures.rows.iter().all(|row| row.len() == 2 && row.iter().all(|time| *time > 0.0))
        );
        let page = page::Page { figures: &figures, rounds: 2 }.to_string();
        for name in figures.names {
            assert!(page.contains(name), "{page}");
        }
    }
}
