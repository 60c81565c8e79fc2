//! Which process is at which place, where processes change places.

use super::canon::for_each_order;

/// All orders of a few processes. In order zero every process is at its own place.
pub struct Orders {
    /// For each order, the process at each place.
    names: Vec<Vec<u8>>,
    /// For each order, the order after each change of places.
    after: Vec<Vec<u16>>,
}

/// With more processes there are too many orders.
const MOST: usize = 5;

impl Orders {
    /// The orders of `processes` that may change places; `None` if there are too many.
    pub fn of(processes: usize, change: bool) -> Option<Self> {
        if change && processes > MOST {
            return None;
        }
        // Processes that look alike may change places.
        let look = |p: usize| (if change { 0 } else { p }, p);
        let looks: Vec<_> = (0..processes).map(look).collect();
        let mut names: Vec<Vec<u8>> = Vec::new();
        for_each_order(&looks, &mut |order| {
            names.push(order.iter().map(|&p| p as u8).collect());
        });
        let mut orders = Orders { names, after: Vec::new() };
        let changes = orders.names.clone();
        orders.after = changes
            .iter()
            .map(|order| {
                let after = |change: &Vec<u8>| {
                    orders.find(&change.iter().map(|&p| order[usize::from(p)]).collect::<Vec<_>>())
                };
                changes.iter().map(after).collect()
            })
            .collect();
        Some(orders)
    }

    pub fn find(&self, order: &[u8]) -> u16 {
        let at = self.names.iter().position(|names| names == order);
        at.expect("all orders are there") as u16
    }

    pub fn count(&self) -> usize {
        self.names.len()
    }

    /// The order after `change`.
    pub fn after(&self, order: usize, change: u16) -> usize {
        usize::from(self.after[order][usize::from(change)])
    }

    pub fn names(&self, order: usize) -> &[u8] {
        &self.names[order]
    }

    /// A set of places as a set of names.
    pub fn named(&self, order: usize, places: u8) -> u8 {
        let there = self.names[order].iter().enumerate();
        there.fold(0, |set, (place, &name)| set | (places >> place & 1) << name)
    }
}
