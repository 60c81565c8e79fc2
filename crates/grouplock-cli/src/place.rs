//! Where the rooms are that a command is about.

use std::path::{Path, PathBuf};

use clap::Args;
use grouplock_room::{Place, Places, RoomError, RoomName};
use nix::unistd::{Group, getegid, geteuid, getgroups};

#[cfg(not(all(feature = "etcd", feature = "gbp")))]
use crate::absent::Absent;

/// The kinds of rooms this program can reach.
pub(crate) fn places() -> Places {
    let places = Places::new();
    #[cfg(feature = "gbp")]
    let places = places.with(grouplock_quorum::opener());
    #[cfg(not(feature = "gbp"))]
    let places = places.with(Absent::of("gbp"));
    #[cfg(feature = "etcd")]
    let places = places.with(grouplock_etcd::opener());
    #[cfg(not(feature = "etcd"))]
    let places = places.with(Absent::of("etcd"));
    places
}

/// Where rooms live.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct At {
    /// Where rooms live: a directory of this machine, gbp://HOST:PORT[,HOST:PORT…] or etcd://HOST:PORT[,HOST:PORT…]. Default:
    /// `$GROUPLOCK_AT`, else the rooms of this user, /run/lock/grouplock-UID (or /tmp/grouplock-UID where not everybody may
    /// write to /run/lock), and for root those of the whole machine.
    #[arg(long = "at", value_name = "PLACE", conflicts_with_all = ["system", "group"])]
    named: Option<String>,
    /// The rooms of the whole machine, /run/grouplock: for root, and for the group of that directory.
    #[arg(long, conflicts_with = "group")]
    system: bool,
    /// The rooms of this group, for its members: a directory next to those of users, made by the member who comes first.
    #[arg(long, value_name = "NAME")]
    group: Option<String>,
}

/// The variable that names a place if no option does.
const VARIABLE: &str = "GROUPLOCK_AT";

impl At {
    /// The place, a directory as an absolute path: it is handed on to commands that may run elsewhere.
    pub(crate) fn place(&self) -> Result<Place, RoomError> {
        let place = match (&self.named, &self.group, std::env::var_os(VARIABLE)) {
            (Some(text), ..) => text.parse()?,
            _ if self.system => Place::system(),
            (_, Some(name), _) => Place::of_group(member_of(name)?),
            (.., Some(text)) => match text.to_str() {
                Some(text) => text.parse()?,
                None => {
                    return Err(RoomError::BadPlace {
                        place: text.to_string_lossy().into_owned(),
                        reason: "GROUPLOCK_AT is expected to be text in UTF-8",
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

    /// The place where others look for a room of this name, if there is one and nobody has said which is meant: root's
    /// rooms are not those of the user who has become root, and a user's are not those of the whole machine.
    pub(crate) fn elsewhere(&self, room: &str) -> Option<Place> {
        let named = self.named.is_some() || self.system || self.group.is_some();
        if named || std::env::var_os(VARIABLE).is_some() {
            return None;
        }
        let other = if geteuid().is_root() {
            let user = std::env::var("SUDO_UID").ok()?.parse().ok().filter(|user| *user != 0)?;
            Place::of_user(user)
        } else {
            Place::system()
        };
        let Place::Directory(directory) = &other else { return None };
        file_of(directory, room)?.exists().then_some(other)
    }
}

/// The file of a room in a directory, whether or not it exists; `None` if no room can have that name.
pub(crate) fn file_of(directory: &Path, room: &str) -> Option<PathBuf> {
    Some(directory.join(RoomName::new(room).ok()?.encoded() + ".room"))
}

/// The number of a group of which we are a member.
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
        Err(wrong("we are no member of it, so its rooms are not ours"))
    }
}
