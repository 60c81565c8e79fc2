//! Group mutual exclusion between machines, by quorums and with priorities.
//!
//! The algorithm is GBP, by Cenci and Ardenghi, corrected: `docs/algorithms/gbp.md` tells what was wrong and what it
//! promises now. This crate is its core: it has no sockets, clocks, threads or randomness. What arrives is
//! handed to it, and what it wants done is pulled from it.
//!
//! * [`Coterie`]: whom each member asks for its vote.
//! * [`Member`]: one member's part in one room, arbiter and group. What it must not forget it tells as [`Record`]s.
//! * [`Process`]: who wants to enter.
//! * [`simulation`]: a cluster and its network in one thread, from a seed.
//!
//! With the feature `network`, which is on by default, there is the real thing too: `wire` has what is said over sockets,
//! `node` a member as a process. `docs/gbp-cluster.md` tells how to run a cluster.
//!
//! # Rooms, sessions and the paper's groups
//!
//! The paper has m groups, each at a node, and lets a process pick one. Here a room has m members, and each
//! is one of those groups. A session belongs to one member, its [`home`], found from its name, and everyone who wants
//! the session asks there, from whatever machine. So processes of one session always share: they are in
//! one queue and enter in one stage, with one epoch. Sessions that have the same home take turns in the
//! stages of that member. Rooms have nothing to do with each other: a transport keeps a [`Member`] for each.
//!
//! ```
//! use std::sync::Arc;
//! use grouplock_quorum::{Coterie, Member, MemberId, Output, Process, ProcessId, Settings, Standing, Time};
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
//! assert_eq!(process.standing(), Standing::Inside { epoch: 1, valid_until: None });
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
mod rivals;
mod settings;
pub mod simulation;
mod time;
#[cfg(feature = "network")]
pub mod wire;

#[cfg(feature = "network")]
pub use client::opener;
#[cfg(feature = "network")]
pub use clock::Clock;
pub use coterie::{Coterie, CoterieError, Quorum};
pub use death::{Dead, Death, Died};
pub use member::{Member, Refused, StageInside};
pub use message::{GroupMessage, PeerMessage, ProcessMessage};
pub use name::{MemberId, ProcessId, home, homes};
pub use output::Output;
pub use process::{Busy, Process, Standing};
pub use rank::{Claim, Precedence, Rank};
pub use record::{Durable, OpenStage, Record, Vote};
pub use settings::{Admission, Settings, Votes};
pub use time::Time;
