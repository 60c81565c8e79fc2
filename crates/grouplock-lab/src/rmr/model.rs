//! What counts as a remote memory reference: four definitions ([`Model`]), counted side by side.
//!
//! The home of a register matters on DSM only: with coherent caches all memory is equally far.
//! Caches are empty at first, never full, and hold one register per line.

use std::fmt;
use std::str::FromStr;

use grouplock_algorithms::memory::{Home, Word};
use serde::{Deserialize, Serialize};

use crate::memory::context::Operation;

/// A way of counting.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Model {
    /// Coherent caches by the letter of Maor and Taubenfeld 2021, section 2.3: "communication is
    /// caused only by a remote write access that overwrites a different value or by the first
    /// remote read access by a process that detects a value written by a different process".
    ///
    /// * A write counts if it changes the value, even if no other process ever read the register.
    /// * A read counts if this process never read the register before, or if another one has
    ///   changed the value since. A change there and back is a change.
    /// * A write of the same value is free and invalidates nothing.
    /// * An operation that reads and writes counts once, if its read or its write would.
    #[default]
    Cc,
    /// Coherent caches as machines have them: write back, invalidate.
    ///
    /// * A read hits if this process has a copy; if not, it counts and leaves a shared copy.
    /// * Anything that may write needs the register exclusively, also a compare-and-swap that
    ///   fails. It hits if no other process has accessed the register since this process last wrote
    ///   it. Otherwise it counts, and every other copy is gone, whether or not the value changed.
    CcWriteBack,
    /// Coherent caches by the letter of He, Gopalakrishnan and Gafni 2018, section 1.1: write
    /// through, invalidate.
    ///
    /// * Every write counts and "invalidates all cached copies of that variable", the writer's own
    ///   among them: their count for the waiting loops has one reference for a process that reads
    ///   the token it wrote.
    /// * A read counts if there is no valid copy, and leaves one.
    /// * An operation that reads and writes is done at the memory: it counts always. It invalidates
    ///   as a write does unless it is a compare-and-swap that fails. (The paper has none.)
    CcWriteThrough,
    /// Distributed shared memory: an access counts unless the register lies in the memory of the
    /// process ([`Home::Process`]).
    ///
    /// A waiting process pays for each read, and it reads only after another process wrote. So a
    /// wait on a register elsewhere costs less here than it would: without bound. Such waits are
    /// reported separately ([`Measurement::remote_spinning`](super::Measurement::remote_spinning)).
    Dsm,
}

impl Model {
    /// All four, in the order in which counts are kept.
    pub const ALL: [Model; 4] = [Model::Cc, Model::CcWriteBack, Model::CcWriteThrough, Model::Dsm];

    /// The name used on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Model::Cc => "cc",
            Model::CcWriteBack => "cc-write-back",
            Model::CcWriteThrough => "cc-write-through",
            Model::Dsm => "dsm",
        }
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Model {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Model::ALL.into_iter().find(|model| model.name() == name).ok_or_else(|| {
            format!("there is no model {name:?}: cc, cc-write-back, cc-write-through or dsm")
        })
    }
}

/// One number per model, in the order of [`Model::ALL`].
pub type PerModel<T> = [T; 4];

/// What an access does to a register, as far as counting is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Read,
    Write {
        changes: bool,
    },
    /// A fetch-and-store, compare-and-swap or fetch-and-add.
    Update {
        writes: bool,
        changes: bool,
    },
}

impl Effect {
    /// What `operation` does to a register that holds `held`.
    pub(crate) fn of(operation: Operation, held: Word) -> Self {
        let written = operation.written(held);
        let changes = written.is_some_and(|value| value != held);
        match operation {
            _ if operation.only_reads() => Effect::Read,
            Operation::Write(_) => Effect::Write { changes },
            _ => Effect::Update { writes: written.is_some(), changes },
        }
    }
}

/// The caches of all processes under each of the three protocols, and where registers lie.
///
/// A copy is current if it has the register's version. So an invalidation is one addition, however
/// many processes hold a copy.
#[derive(Debug)]
pub struct Caches {
    processes: usize,
    homes: Vec<Home>,
    /// Per protocol and register; from one, so that zero is "no copy".
    versions: [Vec<u32>; 3],
    /// Per protocol, register and process.
    copies: [Vec<u32>; 3],
    /// Per register: the process that holds it exclusively, under write back.
    owners: Vec<Option<u16>>,
}

const CC: usize = Model::Cc as usize;
const BACK: usize = Model::CcWriteBack as usize;
const THROUGH: usize = Model::CcWriteThrough as usize;

impl Caches {
    /// Empty caches for registers at `homes`.
    pub fn new(processes: usize, homes: Vec<Home>) -> Self {
        let registers = homes.len();
        Caches {
            processes,
            versions: std::array::from_fn(|_| vec![1; registers]),
            copies: std::array::from_fn(|_| vec![0; registers * processes]),
            owners: vec![None; registers],
            homes,
        }
    }

    fn is_current(&self, protocol: usize, process: usize, register: usize) -> bool {
        self.copies[protocol][register * self.processes + process]
            == self.versions[protocol][register]
    }

    fn copy(&mut self, protocol: usize, process: usize, register: usize) {
        self.copies[protocol][register * self.processes + process] =
            self.versions[protocol][register];
    }

    fn invalidate(&mut self, protocol: usize, register: usize) {
        self.versions[protocol][register] += 1;
    }

    /// Whether `register` is outside the memory of `process`.
    pub(crate) fn is_remote(&self, process: usize, register: usize) -> bool {
        self.homes[register] != Home::Process(process)
    }

    /// Whether the access would count, by model.
    pub fn peek(&self, process: usize, register: usize, effect: Effect) -> PerModel<bool> {
        let stale = |protocol| !self.is_current(protocol, process, register);
        let shared = || self.owners[register] != Some(process as u16);
        let far = self.is_remote(process, register);
        match effect {
            Effect::Read => [stale(CC), stale(BACK), stale(THROUGH), far],
            Effect::Write { changes } => [changes, shared(), true, far],
            Effect::Update { changes, .. } => [changes || stale(CC), shared(), true, far],
        }
    }

    /// The access happens: whether it counts, by model.
    pub fn access(&mut self, process: usize, register: usize, effect: Effect) -> PerModel<bool> {
        let counts = self.peek(process, register, effect);
        match effect {
            Effect::Read => {
                self.copy(CC, process, register);
                self.copy(BACK, process, register);
                self.copy(THROUGH, process, register);
                if counts[BACK] {
                    self.owners[register] = None;
                }
            }
            Effect::Write { changes } | Effect::Update { changes, .. } => {
                if changes {
                    self.invalidate(CC, register);
                }
                self.copy(CC, process, register);
                if counts[BACK] {
                    self.invalidate(BACK, register);
                    self.copy(BACK, process, register);
                    self.owners[register] = Some(process as u16);
                }
                if effect != (Effect::Update { writes: false, changes: false }) {
                    self.invalidate(THROUGH, register);
                }
            }
        }
        counts
    }
}
