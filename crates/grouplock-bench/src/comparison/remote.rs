//! Remote memory references of the group lock that needs a constant number of them. No clock of a
//! machine with two cores can show them. They come from the lab's evidence: the largest number
//! found, and the bound proven for any number of processes.

use serde::{Deserialize, Serialize};

pub(super) const ALGORITHM: &str = "handover";

const EVIDENCE: &str = include_str!("../../../../docs/lab/evidence.json");

/// The most expensive passage in one memory model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Remote {
    algorithm: String,
    pub(super) model: String,
    pub(super) processes: usize,
    pub(super) max: u64,
    /// No passage exceeds it, if it is proven.
    pub(super) bound: Option<u64>,
}

/// The most expensive passage of each memory model.
pub(super) fn largest() -> Result<Vec<Remote>, serde_json::Error> {
    #[derive(Deserialize)]
    struct Evidence {
        rmr: Vec<Remote>,
    }
    let Evidence { mut rmr } = serde_json::from_str(EVIDENCE)?;
    rmr.retain(|remote| remote.algorithm == ALGORITHM);
    rmr.sort_by(|one, other| (&one.model, other.max).cmp(&(&other.model, one.max)));
    rmr.dedup_by(|later, first| later.model == first.model);
    Ok(rmr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evidence_has_every_model_once_with_its_largest() {
        let all = largest().unwrap();
        let models: Vec<&str> = all.iter().map(|remote| &*remote.model).collect();
        assert_eq!(models, ["cc", "cc-write-back", "cc-write-through", "dsm"]);
        assert!(all.iter().all(|remote| remote.bound.is_some_and(|bound| remote.max <= bound)));
    }
}
