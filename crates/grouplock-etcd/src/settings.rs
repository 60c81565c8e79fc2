//! The options of a place, and the variables of the environment.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use grouplock_room::{Place, RoomError, parse_duration};

/// The prefix of a place that names none.
const PREFIX: &str = "grouplock";

/// How long a lease lasts without renewal.
const TTL: Duration = Duration::from_secs(10);

/// How long to try a request before it fails.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The longest lease, in seconds.
const LONGEST_TTL: u64 = 24 * 3600;

/// A user name and its password.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Login {
    pub user: String,
    pub password: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The files for TLS. It is used if there is an authority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Files {
    pub authority: Option<PathBuf>,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
}

/// All options. Rooms with equal settings share a client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Settings {
    /// The place, for messages.
    pub place: String,
    pub hosts: Vec<String>,
    /// Has no slash at its ends.
    pub prefix: String,
    pub login: Option<Login>,
    pub files: Files,
    pub ttl: Duration,
    pub delay: Duration,
    pub timeout: Duration,
    /// Also use members that the place does not name.
    pub uses_all_members: bool,
}

impl Settings {
    /// Reads a place and the environment.
    pub(crate) fn of(place: &Place) -> Result<Self, RoomError> {
        Settings::read(place, |name| std::env::var(name).ok())
    }

    /// Reads a place. `variable` gives what the place leaves out.
    pub fn read(
        place: &Place,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, RoomError> {
        let bad_place = || RoomError::BadPlace {
            place: place.to_string(),
            reason: "etcd://host:port is expected",
        };
        let Place::Servers { hosts, path, options, .. } = place else { return Err(bad_place()) };
        if hosts.is_empty() {
            return Err(bad_place());
        }
        let named = |name| variable(name).filter(|value| !value.is_empty());
        let file = |name| named(name).map(PathBuf::from);
        let mut settings = Settings {
            place: place.to_string(),
            hosts: hosts.clone(),
            prefix: path.trim_matches('/').to_owned(),
            login: None,
            files: Files {
                authority: file("GROUPLOCK_ETCD_CACERT"),
                certificate: file("GROUPLOCK_ETCD_CERT"),
                key: file("GROUPLOCK_ETCD_KEY"),
            },
            ttl: TTL,
            delay: Duration::ZERO,
            timeout: TIMEOUT,
            uses_all_members: false,
        };
        if settings.prefix.is_empty() {
            PREFIX.clone_into(&mut settings.prefix);
        }
        for (name, value) in options {
            settings.set(name, value)?;
        }
        let Files { authority, certificate, key } = &settings.files;
        if certificate.is_some() != key.is_some() {
            return Err(bad("cert", "given without key, or key without it", "both or none"));
        }
        if certificate.is_some() && authority.is_none() {
            let expected = "the file of the authority that signed the servers' certificates";
            return Err(bad("cacert", "left out if there is a cert", expected));
        }
        settings.login = match (named("GROUPLOCK_ETCD_USER"), named("GROUPLOCK_ETCD_PASSWORD")) {
            (Some(user), Some(password)) => Some(Login { user, password }),
            (None, None) => None,
            _ => {
                let value = "set without the other of GROUPLOCK_ETCD_USER and _PASSWORD";
                return Err(bad("the login", value, "both or none"));
            }
        };
        Ok(settings)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), RoomError> {
        let file = || {
            let path = PathBuf::from(value);
            if value.is_empty() {
                return Err(bad("a file among the options of the place", "``", "a path"));
            }
            Ok(Some(path))
        };
        match name {
            "cacert" => self.files.authority = file()?,
            "cert" => self.files.certificate = file()?,
            "key" => self.files.key = file()?,
            "ttl" => {
                let ttl = parse_duration(value).ok().filter(|ttl| {
                    ttl.subsec_nanos() == 0 && (1..=LONGEST_TTL).contains(&ttl.as_secs())
                });
                let expected = "whole seconds from 1 to 86400, such as `10` or `10s`";
                self.ttl = ttl.ok_or_else(|| bad("ttl", &quoted(value), expected))?;
            }
            "delay" => self.delay = some_time("delay", value)?,
            "timeout" => {
                self.timeout = some_time("timeout", value)?;
                if self.timeout.is_zero() {
                    return Err(bad("timeout", &quoted(value), "more than 0"));
                }
            }
            "members" => {
                self.uses_all_members = match value {
                    "named" => false,
                    "all" => true,
                    _ => return Err(bad("members", &quoted(value), "`named` or `all`")),
                }
            }
            _ => {
                let known = "one of cacert, cert, key, ttl, delay, timeout, members";
                return Err(bad("an option of an etcd place", &quoted(name), known));
            }
        }
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    format!("`{text}`")
}

fn bad(what: &'static str, value: &str, expected: &str) -> RoomError {
    RoomError::BadOption { what, value: value.to_owned(), expected: format!("expected {expected}") }
}

fn some_time(what: &'static str, value: &str) -> Result<Duration, RoomError> {
    let hour = Duration::from_secs(3600);
    parse_duration(value).ok().filter(|time| *time <= hour).ok_or_else(|| {
        bad(what, &quoted(value), "a time up to an hour, such as `5`, `5s` or `500ms`")
    })
}
