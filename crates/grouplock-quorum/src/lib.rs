//! Group mutual exclusion between machines, by quorums and with priorities: the backend of rooms at
//! `gbp://`.
//!
//! The algorithm is GBP, by Cenci and Ardenghi, corrected. `docs/algorithms/gbp.md` describes the
//! faults of the paper and the promises of this version. The core of this crate has no sockets,
//! clocks, threads or randomness. The caller hands it what arrives, and takes from it what to do.
//!
//! * [`Coterie`]: which members each member asks for their votes.
//! * [`Member`]: one member's part in one room, as arbiter and as group. Its [`Record`]s must be
//!   saved.
//! * [`Process`]: a process that enters and leaves.
//!
//! The feature `network`, which is on by default, adds the real cluster: `wire` has the messages on
//! sockets, `node` is a member as a program. `docs/gbp-cluster.md` describes how to run a cluster.
//!
//! # Rooms, sessions and the paper's groups
//!
//! The paper has m groups, one at each node, and a process picks one. Here a room has m members,
//! and each member is one of those groups. A session belongs to one member, its [`home`], which
//! follows from its name. Every process that wants the session asks there, from any machine. So
//! processes of one session share: they are in one queue and enter in one stage, with one epoch.
//! Sessions with the same home use the stages of that member one after the other. Rooms are
//! independent: a transport keeps a [`Member`] for each.
//!
//! ```
//! use std::sync::Arc;
//! use grouplock_quorum::{Coterie, Member, MemberId, Output, Process, ProcessId, Settings, ProcessState, Time};
//!
//! let (settings, now) = (Settings::default(), Time::ZERO);
//! let coterie = Arc::new(Coterie::plane(3)?);
//! let mut members = (0..3)
//!     .map(|id| Member::new(MemberId(id), coterie.clone(), settings))
//!     .collect::<Result<Vec<_>, _>>()?;
//! let mut process = Process::new(ProcessId(0), 3, settings);
//! process.ask(now, "release", None, 0)?;
//!
//! // A network that delivers at once.
//! while let Some((home, message)) = process.poll_transmit() {
//!     members[home.index()].handle_process(now, process.id(), message)?;
//! }
//! loop {
//!     let mut quiet = true;
//!     for from in 0..3 {
//!         while let Some(output) = members[from].poll_transmit() {
//!             quiet = false;
//!             match output {
//!                 Output::Save(_) => {} // to disk, before going on
//!                 Output::ToMember(to, message) => {
//!                     members[to.index()].handle(now, MemberId(from as u16), message)?;
//!                 }
//!                 Output::ToProcess(_, message) => process.handle(now, MemberId(from as u16), message),
//!             }
//!         }
//!     }
//!     if quiet { break }
//! }
//! assert_eq!(process.state(), ProcessState::Inside { epoch: 1, valid_until: None });
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod arbiter;
mod ballots;
#[cfg(feature = "network")]
mod client;
#[cfg(feature = "network")]
mod clock;
mod coterie;
mod death;
mod group;
mod member;
mod message;
mod name;
#[cfg(feature = "network")]
pub mod node;
mod output;
mod process;
mod rank;
mod record;
mod settings;
mod time;
#[cfg(feature = "network")]
pub mod wire;

#[cfg(feature = "network")]
pub use client::opener;
#[cfg(feature = "network")]
pub use clock::Clock;
pub use coterie::{Coterie, CoterieError, Quorum};
pub use death::{DeadProcess, Death, KnownDeath};
pub use member::{Member, Refused, StageInside};
pub use message::{GroupMessage, PeerMessage, ProcessMessage};
pub use name::{MemberId, ProcessId, home, homes};
pub use output::Output;
pub use process::{Busy, Process, ProcessState};
pub use rank::{Claim, Precedence, Rank};
pub use record::{Durable, OpenStage, Record, Vote};
pub use settings::{Admission, Settings, Votes};
pub use time::Time;
