//! Options that say where rooms live.

use std::path::{Path, PathBuf};

use clap::Args;
use grouplock_room::{Place, Places, RoomError, RoomName};
use nix::unistd::{Group, getegid, geteuid, getgroups};

use crate::entering::variables;
#[cfg(not(all(feature = "etcd", feature = "gbp")))]
use crate::missing_feature::MissingBackend;

/// The kinds of rooms that this program can use.
pub(crate) fn places() -> Places {
    let places = Places::new();
    #[cfg(feature = "gbp")]
    let places = places.with(grouplock_quorum::opener());
    #[cfg(not(feature = "gbp"))]
    let places = places.with(MissingBackend::of("gbp"));
    #[cfg(feature = "etcd")]
    let places = places.with(grouplock_etcd::opener());
    #[cfg(not(feature = "etcd"))]
    let places = places.with(MissingBackend::of("etcd"));
    places
}

/// Where rooms live.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct At {
    /// Where rooms live: a directory of this machine, gbp://HOST:PORT[,HOST:PORT…] or
    /// etcd://HOST:PORT[,HOST:PORT…]. Default: `$GROUPLOCK_AT`. Without it, the rooms of this user,
    /// /run/lock/grouplock-UID (/tmp/grouplock-UID if not every user may write to /run/lock). For
    /// root, as --system.
    #[arg(long = "at", value_name = "PLACE", conflicts_with_all = ["system", "group"])]
    named: Option<String>,
    /// The rooms of the whole machine, /run/grouplock. For root, and for the group of that
    /// directory.
    #[arg(long, conflicts_with = "group")]
    system: bool,
    /// The rooms of this group, for its members. The directory is next to the directories of users.
    /// The first member that needs it creates it.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
}

impl At {
    /// The place. A directory is an absolute path, because commands inherit it and may run in other
    /// directories.
    pub(crate) fn place(&self) -> Result<Place, RoomError> {
        let place = match (&self.named, &self.group, std::env::var_os(variables::AT)) {
            (Some(text), ..) => text.parse()?,
            _ if self.system => Place::system(),
            (_, Some(name), _) => Place::of_group(member_of(name)?),
            (.., Some(text)) => match text.to_str() {
                Some(text) => text.parse()?,
                None => {
                    return Err(RoomError::BadPlace {
                        place: text.to_string_lossy().into_owned(),
                        reason: "GROUPLOCK_AT must be text in UTF-8",
                    });
                }
            },
            _ => Place::local()?,
        };
        match place {
            Place::Directory(path) => {
                let absolute = std::path::absolute(&path);
                Ok(Place::Directory(absolute.unwrap_or(path)))
            }
            servers => Ok(servers),
        }
    }

    /// Another place that has a room of this name, if no option says which one is meant. For root
    /// under sudo(8), the place of that user. For other users, the place of the whole machine.
    pub(crate) fn elsewhere(&self, room: &str) -> Option<Place> {
        let named = self.named.is_some() || self.system || self.group.is_some();
        if named || std::env::var_os(variables::AT).is_some() {
            return None;
        }
        let other = if geteuid().is_root() { of_sudo_user()? } else { Place::system() };
        let Place::Directory(directory) = &other else { return None };
        file_of(directory, room)?.exists().then_some(other)
    }
}

/// The place of the user that has become root by sudo(8).
pub(crate) fn of_sudo_user() -> Option<Place> {
    let user = std::env::var("SUDO_UID").ok()?.parse().ok();
    user.filter(|user| *user != 0 && geteuid().is_root()).map(Place::of_user)
}

/// The file of a room in a directory, which need not exist; `None` if the name is not valid.
pub(crate) fn file_of(directory: &Path, room: &str) -> Option<PathBuf> {
    Some(directory.join(RoomName::new(room).ok()?.encoded() + ".room"))
}

/// The number of a group that this user is a member of.
fn member_of(name: &str) -> Result<u32, RoomError> {
    let wrong = |expected: &str| RoomError::BadOption {
        what: "--group",
        value: format!("`{name}`"),
        expected: expected.to_owned(),
    };
    let group = Group::from_name(name).ok().flatten();
    let gid = group.ok_or_else(|| wrong("there is no such group"))?.gid;
    let member = getegid() == gid || getgroups().is_ok_and(|groups| groups.contains(&gid));
    if member || geteuid().is_root() {
        Ok(gid.as_raw())
    } else {
        Err(wrong("this user is not a member of it"))
    }
}
