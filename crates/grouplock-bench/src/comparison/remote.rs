//! Remote memory references of the group lock with a constant number of them: what a machine of two cores cannot show by its clock. They
//! are the lab's, from its evidence: the largest found, and the bound proven for any number of processes.

use serde::{Deserialize, Serialize};

/// The algorithm.
pub const ALGORITHM: &str = "handover";

const EVIDENCE: &str = include_str!("../../../../docs/lab/evidence.json");

/// The most expensive passage in one model of memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remote {
    algorithm: String,
    /// The model of memory.
    pub model: String,
    /// For how many processes.
    pub processes: usize,
    /// References of the most expensive passage found.
    pub max: u64,
    /// What no passage exceeds, if that is proven.
    pub bound: Option<u64>,
}

/// The most expensive passages, a model of memory each.
///
/// # Errors
/// If the evidence cannot be read.
pub fn largest() -> Result<Vec<Remote>, serde_json::Error> {
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
