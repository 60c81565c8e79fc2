//! Snapshots: the state of a room at one time.
//!
//! With the feature `serde` they can be serialized, as `grouplock status --json` does. Times are
//! seconds since 1970, durations are seconds, the policy and the identifiers are texts.

use std::fmt;
use std::num::NonZeroU32;
use std::time::{Duration, SystemTime};

use crate::policy::{Policy, Priority};

/// Identifies a holder or a waiter among the participants of a room.
///
/// A text without spaces. The backend defines it.
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

/// A holder or a waiter.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Participant {
    /// The same as [`Guard::holder`](crate::Guard::holder).
    pub id: HolderId,
    /// The number of the process on its machine.
    pub pid: u32,
    /// The machine it runs on.
    pub host: String,
    /// The name of its user; the number if there is no name.
    pub user: String,
    /// Its command line, shortened.
    pub command: String,
    /// Since when it is inside or waits.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub since: SystemTime,
    /// The urgency of its request.
    pub priority: Priority,
    /// How long it expects to stay.
    #[cfg_attr(
        feature = "serde",
        serde(rename = "expected_seconds", serialize_with = "form::length")
    )]
    pub expected: Option<Duration>,
    /// Whether it is alone, or waits to be alone.
    pub alone: bool,
    /// Its limit for the number of holders.
    pub at_most: Option<NonZeroU32>,
}

impl Participant {
    /// For backends. Facts that are not given are unknown.
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

/// The participants of one session that are inside together, or will be.
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

/// A phase that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct PastPhase {
    /// Its session.
    pub session: String,
    /// Its epoch.
    pub epoch: u64,
    /// When its first holder entered.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub began: SystemTime,
    /// When its last holder left.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub ended: SystemTime,
    /// The number of holders that entered.
    pub entries: u64,
    /// Whether a holder died inside.
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

/// The state of a room at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Snapshot {
    /// The room's name.
    pub room: String,
    /// Its policy.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::text"))]
    pub policy: Policy,
    /// The epoch of the current or the last phase. Before the first phase, a smaller number.
    pub epoch: u64,
    /// The holders.
    pub inside: Option<Phase>,
    /// The waiters. The first phase is the next to enter.
    pub waiting: Vec<Phase>,
    /// Phases that have ended, the oldest first. The backend remembers a limited number.
    pub recent: Vec<PastPhase>,
    /// The number of noticed deaths inside since the room was created. Servers may have forgotten
    /// earlier ones.
    pub deaths: u64,
    /// When it was taken.
    #[cfg_attr(feature = "serde", serde(serialize_with = "form::moment"))]
    pub taken: SystemTime,
    /// Whether all parts belong to one time. False if the room changed too fast, or if parts are
    /// missing.
    pub exact: bool,
    /// The servers that did not answer. What only they know is missing.
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

    /// The number of waiters.
    pub fn waiters(&self) -> usize {
        self.waiting.iter().map(|phase| phase.members.len()).sum()
    }

    /// The number of phases that wait in front of the phase of `id`; 0 if its phase is the next.
    pub fn phases_before(&self, id: &HolderId) -> Option<usize> {
        self.waiting.iter().position(|phase| phase.members.iter().any(|member| &member.id == id))
    }
}

/// Serialization of fields that have no form of their own.
#[cfg(feature = "serde")]
pub(crate) mod form {
    use std::fmt::Display;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    use serde::{Serialize, Serializer};

    pub(crate) fn moment<S: Serializer>(time: &SystemTime, to: S) -> Result<S::Ok, S::Error> {
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
