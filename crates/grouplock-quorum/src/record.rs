//! What a member must not forget.
//!
//! An arbiter that forgets its vote votes twice; a group that forgets its stage lets newcomers into a room that it has
//! left. So these facts are on disk before anybody can have acted on them. Everything else (queues, votes received,
//! processes that wait) is asked for again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::death::{Death, Died};
use crate::name::{MemberId, ProcessId};
use crate::rank::Rank;

/// A change to what is [`Durable`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Record {
    /// The arbiter's part changed: before it votes.
    Vote(Vote),
    /// The group starts a stage: before it asks for votes, so that no number is used twice.
    Wanting {
        /// The number of the stage.
        stage: u64,
    },
    /// The stage begins: before the first process is let in.
    Opened(OpenStage),
    /// A process is let in: before it hears of it.
    Admitted {
        /// The process.
        process: ProcessId,
        /// Its request.
        attempt: u64,
    },
    /// The stage is over: before the votes are given back.
    Closed,
    /// A process has left a stage that goes on. If it is forgotten, the process counts as one inside for a lease more.
    Left {
        /// The process.
        process: ProcessId,
    },
    /// The arbiter has its vote back, and nobody wants it. If it is forgotten, the owner is asked again.
    Returned(Vote),
    /// The last death that is known. If it is forgotten, it is noticed or heard of again.
    Died(Died),
    /// The death that those of the stage under way are told of.
    Recovered(Death),
}

impl Record {
    /// Whether nothing depends on it, so that it can be written with the next one that counts.
    pub fn can_wait(&self) -> bool {
        matches!(self, Record::Left { .. } | Record::Returned(_) | Record::Died(_))
    }
}

/// What an arbiter has promised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Vote {
    /// Who has the vote, and the number of the grant.
    pub owner: Option<(Rank, u64)>,
    /// The number of the last grant.
    pub grant: u64,
    /// For each member the last stage known to be over.
    pub done: BTreeMap<MemberId, u64>,
    /// The highest epoch heard of.
    pub epoch: u64,
}

/// A stage that is under way.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct OpenStage {
    /// Whose turn it is.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// Who is inside, and with which request.
    pub inside: BTreeMap<ProcessId, u64>,
    /// The death that they are told of: a record of its own.
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
    /// As arbiter.
    pub vote: Vote,
    /// The last stage that was started.
    pub stage: u64,
    /// The highest epoch held.
    pub epoch: u64,
    /// That stage, if it is under way.
    pub open: Option<OpenStage>,
    /// The last death that is known: a record of its own.
    #[serde(skip)]
    pub died: Option<Died>,
}

impl Durable {
    /// What a member begins with in a room that it knows nothing of, if all numbers that anybody may remember of it there are
    /// below `floor`.
    pub fn above(floor: u64) -> Self {
        let vote = Vote { grant: floor, epoch: floor, ..Vote::default() };
        // The epoch too: it is told with the end of the stages that were forgotten.
        Durable { vote, stage: floor, epoch: floor, ..Durable::default() }
    }

    /// What is written as records of its own, so that data of members that knew nothing of it can be read.
    pub fn beside(&self) -> Vec<Record> {
        let recovered = self.open.as_ref().and_then(|open| open.recovered.clone());
        let died = self.died.clone().map(Record::Died);
        died.into_iter().chain(recovered.map(Record::Recovered)).collect()
    }

    /// Takes in one more record.
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
