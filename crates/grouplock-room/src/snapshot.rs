//! What a room looks like at a moment.
//!
//! With the feature `serde` it can be serialized, as `grouplock status --json` does: moments are seconds since 1970, lengths of
//! time seconds, the policy and the holder texts.

use std::fmt;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use crate::policy::{Policy, Priority};

/// Names a holder or waiter among those that are in a room at the same time.
///
/// A text without spaces; what it is made of is the backend's business.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HolderId(String);

impl HolderId {
    /// For backends.
    pub fn new(id: impl Into<String>) -> Self {
        HolderId(id.into())
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for HolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Someone inside or waiting.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Participant {
    /// Equal to the [guard's](crate::Guard::holder).
    pub id: HolderId,
    /// The process, as numbered where it runs.
    pub pid: u32,
    /// The machine it runs on.
    pub host: String,
    /// The name of its user, or the number if it has none.
    pub user: String,
    /// Its command line, shortened.
    pub command: String,
    /// Since when it is inside, or waits.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub since: SystemTime,
    /// What it asked with.
    pub priority: Priority,
    /// How long it expected to stay.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "expected_seconds", serialize_with = "form::length")
    )]
    pub expected: Option<Duration>,
    /// Whether it is, or wants to be, alone.
    pub alone: bool,
    /// How many holders there may be while it is inside.
    pub at_most: Option<NonZeroU32>,
}

impl Participant {
    /// For backends: with the facts that have no default, everything else unknown.
    pub fn new(id: HolderId, since: SystemTime) -> Self {
        Participant {
            id,
            pid: 0,
            host: String::new(),
            user: String::new(),
            command: String::new(),
            since,
            priority: Priority::default(),
            expected: None,
            alone: false,
            at_most: None,
        }
    }
}

/// Those of one session that are inside together, or will be.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Phase {
    /// Their session.
    pub session: String,
    /// In order of entry, or of arrival. Never empty.
    pub members: Vec<Participant>,
}

impl Phase {
    /// For backends.
    pub fn new(session: impl Into<String>, members: Vec<Participant>) -> Self {
        Phase { session: session.into(), members }
    }
}

/// A phase that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PastPhase {
    /// Its session.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// When the first entered.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub began: SystemTime,
    /// When the last left.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub ended: SystemTime,
    /// How many entered.
    pub entries: u64,
    /// Whether one of them died inside.
    pub died: bool,
}

impl PastPhase {
    /// For backends.
    pub fn new(
        session: impl Into<String>,
        epoch: u64,
        began: SystemTime,
        ended: SystemTime,
    ) -> Self {
        PastPhase { session: session.into(), epoch, began, ended, entries: 1, died: false }
    }
}

/// A room at a moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The room's name.
    pub room: String,
    /// Its policy.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::text"))]
    pub policy: Policy,
    /// The epoch of the phase inside, or of the last one. If there was none yet, a number below the first.
    pub epoch: u64,
    /// Those inside.
    pub inside: Option<Phase>,
    /// Those waiting, the next first.
    pub waiting: Vec<Phase>,
    /// Phases that are over, the oldest first, as far as the backend remembers them.
    pub recent: Vec<PastPhase>,
    /// How many holders have died inside since the room was made, as far as it was noticed.
    pub deaths: u64,
    /// When it was taken.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub taken: SystemTime,
    /// False if the room changed so fast that parts may be of different moments, or if some are missing.
    pub exact: bool,
    /// Servers that did not answer, in words: what they know is missing.
    pub unanswered: Vec<String>,
}

impl Snapshot {
    /// For backends: an empty room.
    pub fn empty(room: impl Into<String>, policy: Policy, taken: SystemTime) -> Self {
        Snapshot {
            room: room.into(),
            policy,
            epoch: 0,
            inside: None,
            waiting: Vec::new(),
            recent: Vec::new(),
            deaths: 0,
            taken,
            exact: true,
            unanswered: Vec::new(),
        }
    }

    /// The session inside.
    pub fn session(&self) -> Option<&str> {
        self.inside.as_ref().map(|phase| phase.session.as_str())
    }

    /// The number of holders.
    pub fn holders(&self) -> usize {
        self.inside.as_ref().map_or(0, |phase| phase.members.len())
    }

    /// The number of those waiting.
    pub fn waiters(&self) -> usize {
        self.waiting.iter().map(|phase| phase.members.len()).sum()
    }

    /// How many phases wait in front of the one `id` waits in: 0 if its phase is the next.
    pub fn phases_before(&self, id: &HolderId) -> Option<usize> {
        self.waiting.iter().position(|phase| phase.members.iter().any(|member| &member.id == id))
    }
}

/// How fields are serialized that have no form of their own.
#[cfg(feature = "serde")]
mod form {
    use std::fmt::Display;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use serde::{Serialize, Serializer};

    pub(super) fn moment<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64())
    }

    #[expect(clippy::ref_option, reason = "serde calls it so")]
    pub(super) fn length<S: Serializer>(time: &Option<Duration>, to: S) -> Result<S::Ok, S::Error> {
        time.map(|time| time.as_secs_f64()).serialize(to)
    }

    pub(super) fn text<S: Serializer>(text: &impl Display, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(text)
    }
}
