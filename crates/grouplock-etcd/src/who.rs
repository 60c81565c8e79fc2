//! The values of the keys, as JSON.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use grouplock_room::{HolderId, Participant, Priority, Recovered, myself};
use serde::{Deserialize, Serialize};

use crate::keys::ALONE;

/// The longest command line that is shown, in bytes.
const COMMAND_MAX: usize = 200;

/// A waiter or holder: the value of its entry, and of its mark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Who {
    pub session: String,
    pub host: String,
    pub pid: u32,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// When it asked, in milliseconds since 1970; in a mark: when it entered.
    pub since: u64,
    pub priority: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expected: Option<u64>,
}

/// The record of deaths.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default)]
pub struct Died {
    /// The epoch of the phase whose holders learn of them.
    pub told: i64,
    /// How many have died since the room was made.
    pub total: u64,
    /// Of the last death: the epoch of its phase, or if it is not known the revision at which the
    /// dead holder entered.
    pub epoch: i64,
    pub session: String,
    pub host: String,
    pub pid: u32,
    /// When the death was noticed, in milliseconds since 1970.
    pub noticed: u64,
    /// The newest mark of a dead holder that was noticed: the revision at which it was made.
    pub seen: i64,
}

impl Died {
    pub(crate) fn recovered(&self) -> Recovered {
        Recovered::new(self.epoch.cast_unsigned(), &*self.session, self.pid, moment(self.noticed))
    }
}

impl Who {
    pub(crate) fn participant(&self, id: &str) -> Participant {
        let mut participant = Participant::new(HolderId::new(id), moment(self.since));
        participant.pid = self.pid;
        participant.host.clone_from(&self.host);
        participant.user.clone_from(&self.user);
        participant.command.clone_from(&self.command);
        participant.priority = Priority(self.priority);
        participant.expected = self.expected.map(Duration::from_millis);
        participant.alone = id.ends_with(ALONE);
        participant
    }
}

/// The mark of a holder that enters now, from the value of its entry.
pub(crate) fn mark(entry: &[u8]) -> Vec<u8> {
    let Who { session, host, pid, .. } = read(entry);
    // Only what the report of a death and a snapshot need.
    write(&Who { session, host, pid, since: now(), ..Who::default() })
}

/// As JSON. These types cannot fail to be written.
pub fn write(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(value).unwrap_or_default()
}

/// From JSON. Any other content reads as the default.
pub fn read<T: Default + for<'de> Deserialize<'de>>(value: &[u8]) -> T {
    serde_json::from_slice(value).unwrap_or_default()
}

pub(crate) fn moment(milliseconds: u64) -> SystemTime {
    UNIX_EPOCH.checked_add(Duration::from_millis(milliseconds)).unwrap_or(UNIX_EPOCH)
}

pub(crate) fn now() -> u64 {
    let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// This process.
pub(crate) fn this_process(command: Option<&str>) -> Who {
    let command = command.map_or_else(myself::command_line, str::to_owned);
    Who {
        host: myself::host(),
        pid: std::process::id(),
        user: myself::user(),
        command: myself::cut(command, COMMAND_MAX),
        ..Who::default()
    }
}
