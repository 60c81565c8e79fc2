//! What a snapshot tells.

use std::time::Duration;

use super::{ALONE, Handover};
use crate::Snapshot;
use crate::snapshot::WaitingPhase;

impl<S: Copy> Handover<S> {
    /// What is to be seen if these requests are in the queue, by the numbers and names of their processes.
    pub(super) fn show(&self, queue: &[(u64, usize)]) -> Snapshot<S> {
        let (mut told, more) = self.seats.told();
        told.sort_unstable_by_key(|(name, _)| *name);
        let inside = queue.first().map_or(0, |(number, _)| *number);
        let holders = queue.iter().take_while(|(number, _)| *number == inside).count();
        // Nodes go from one to another inside, so those there are found by the number.
        let session = told.iter().find(|(_, told)| told.number == inside);
        let session = session.and_then(|(_, told)| told.session);
        let mut waiting: Vec<WaitingPhase<S>> = Vec::new();
        let mut before = inside;
        for (number, name) in &queue[holders..] {
            let place = told.binary_search_by_key(name, |(name, _)| *name);
            let told = place.map(|place| told[place].1);
            let told = told.ok().filter(|told| told.number == *number);
            let age = told.and_then(|told| told.since).map_or(Duration::ZERO, |at| at.elapsed());
            if *number != before {
                let session = told.and_then(|told| told.session);
                waiting.push(WaitingPhase { session, waiters: 0, age });
                before = *number;
            }
            if let Some(phase) = waiting.last_mut() {
                phase.waiters += 1;
                phase.age = phase.age.max(age);
            }
        }
        Snapshot { session, exclusive: inside >= ALONE, holders: holders + more, waiting }
    }
}
