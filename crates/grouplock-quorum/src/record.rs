//! What a member must not forget.
//!
//! An arbiter that forgets its vote votes twice. A group that forgets its stage admits processes to
//! a room that it has left. So these facts are on disk before anything depends on them. Everything
//! else (queues, received votes, waiting processes) is asked for again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::death::{Death, KnownDeath};
use crate::name::{MemberId, ProcessId};
use crate::rank::Rank;

/// A change to what is [`Durable`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Record {
    /// The vote has changed: written before the arbiter votes.
    Vote(Vote),
    /// The group begins a stage: written before it asks for votes, so that no number is used twice.
    Wanting {
        /// The number of the stage.
        stage: u64,
    },
    /// The stage is open: written before the first process is admitted.
    Opened(OpenStage),
    /// A process is admitted: written before it learns of it.
    Admitted {
        /// The process.
        process: ProcessId,
        /// Its request.
        attempt: u64,
    },
    /// The stage is over: written before the votes are returned.
    Closed,
    /// A process has left a stage that goes on. If this is lost, the process counts as inside for
    /// one more lease.
    Left {
        /// The process.
        process: ProcessId,
    },
    /// The arbiter has its vote back, and nobody wants it. If this is lost, the arbiter asks the
    /// owner again.
    Returned(Vote),
    /// The last known death. If this is lost, it is noticed or heard again.
    Died(KnownDeath),
    /// The death that the processes of the open stage learn of.
    Recovered(Death),
}

impl Record {
    /// Whether nothing depends on it. Then it can be written with the next record that cannot wait.
    pub fn can_wait(&self) -> bool {
        matches!(self, Record::Left { .. } | Record::Returned(_) | Record::Died(_))
    }
}

/// What an arbiter has promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vote {
    /// The stage with the vote, and the number of the grant.
    pub owner: Option<(Rank, u64)>,
    /// The number of the last grant.
    pub grant: u64,
    /// The last stage of each member that is known to be over.
    pub done: BTreeMap<MemberId, u64>,
    /// The highest known epoch.
    pub epoch: u64,
}

/// A stage in which processes are inside.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenStage {
    /// Its session.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// The processes inside, and their requests.
    pub inside: BTreeMap<ProcessId, u64>,
    /// The death that they learn of. It is a record of its own.
    #[serde(skip)]
    pub recovered: Option<Death>,
}

/// All that a member has saved: the sum of its [records](Record).
///
/// ```
/// use grouplock_quorum::{Durable, Record};
///
/// let mut disk = Durable::default();
/// disk.apply(Record::Wanting { stage: 1 });
/// assert_eq!(disk.stage, 1);
/// assert!(disk.open.is_none());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Durable {
    /// The vote of the arbiter.
    pub vote: Vote,
    /// The last stage that began.
    pub stage: u64,
    /// The highest epoch that was held.
    pub epoch: u64,
    /// The last stage, if it is open.
    pub open: Option<OpenStage>,
    /// The last known death. It is a record of its own.
    #[serde(skip)]
    pub died: Option<KnownDeath>,
}

impl Durable {
    /// The data of a member in a room that it does not know, if all numbers that others may
    /// remember of it there are below `floor`.
    pub fn above(floor: u64) -> Self {
        let vote = Vote { grant: floor, epoch: floor, ..Vote::default() };
        // The epoch too: it is sent with the end of forgotten stages.
        Durable { vote, stage: floor, epoch: floor, ..Durable::default() }
    }

    /// The parts that are written as records of their own, so that older data can be read.
    pub fn beside(&self) -> Vec<Record> {
        let recovered = self.open.as_ref().and_then(|open| open.recovered.clone());
        let died = self.died.clone().map(Record::Died);
        died.into_iter().chain(recovered.map(Record::Recovered)).collect()
    }

    /// Applies one more record.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Vote(vote) | Record::Returned(vote) => self.vote = vote,
            Record::Wanting { stage } => self.stage = stage,
            Record::Opened(open) => {
                self.epoch = open.epoch;
                self.open = Some(open);
            }
            Record::Admitted { process, attempt } => {
                if let Some(open) = &mut self.open {
                    open.inside.insert(process, attempt);
                }
            }
            Record::Closed => self.open = None,
            Record::Left { process } => {
                if let Some(open) = &mut self.open {
                    open.inside.remove(&process);
                }
            }
            Record::Died(died) => self.died = Some(died),
            Record::Recovered(death) => {
                if let Some(open) = &mut self.open {
                    open.recovered = Some(death);
                }
            }
        }
    }
}
