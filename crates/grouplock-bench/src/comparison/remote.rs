//! Remote memory references of the group lock with a constant number of them, from the lab's meter: what a machine of
//! two cores cannot show by its clock.

use grouplock_algorithms::claims::Growth;
use grouplock_lab::rmr::{self, Model, Options, RmrError};
use serde::Serialize;

/// The algorithm.
pub const ALGORITHM: &str = "handover";
/// The numbers of processes.
pub const PROCESSES: [usize; 4] = [2, 8, 64, 256];

/// The most expensive passages found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Remote {
    /// How many processes there were.
    pub processes: usize,
    /// References with coherent caches.
    pub cc: u64,
    /// References with distributed memory.
    pub dsm: u64,
    /// Whether somebody waited on a distant register, which costs without bound.
    pub remote_spinning: bool,
}

/// How each of the two counts grows, as far as the sizes tell.
pub fn growth(counts: &[Remote]) -> [Growth; 2] {
    let by = |of: fn(&Remote) -> u64| {
        let points: Vec<_> = counts.iter().map(|count| (count.processes, of(count))).collect();
        rmr::fit(&points)
    };
    [by(|count| count.cc), by(|count| count.dsm)]
}

/// Counts, with `passages` of each process, and trying `searched` schedules besides the fixed ones.
///
/// # Errors
/// Those of [`rmr::measure`].
pub fn count(passages: usize, searched: usize) -> Result<Vec<Remote>, RmrError> {
    let options = Options { passages, search_rounds: searched, ..Options::default() };
    PROCESSES
        .into_iter()
        .map(|processes| {
            let all = rmr::measure(ALGORITHM, processes, &options)?;
            let by = |model| all.iter().find(|measurement| measurement.model == model);
            let most = |model| by(model).map_or(0, |measurement| measurement.max);
            Ok(Remote {
                processes,
                cc: most(Model::Cc),
                dsm: most(Model::Dsm),
                remote_spinning: all.iter().any(|measurement| measurement.remote_spinning),
            })
        })
        .collect()
}
