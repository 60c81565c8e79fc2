//! Where rooms live.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::RoomError;

/// Where a room lives: in a directory of this machine, or on servers.
///
/// | text | meaning |
/// |---|---|
/// | a path, `file:` before it or not | a directory on this machine |
/// | `gbp://host:port[,host:port…]` | members of a quorum |
/// | `etcd://host:port[,host:port…][/path]` | an etcd cluster, and where in it |
///
/// Any other `scheme://…` goes to the [opener](crate::Opener) of that scheme. Options follow a
/// question mark: `?cacert=/etc/ca.pem&ttl=10`. The opener defines them. A place contains no user
/// names and passwords, because every user of the machine can read a command line.
///
/// ```
/// use grouplock_room::Place;
///
/// let place: Place = "etcd://one:2379,two:2379".parse()?;
/// assert_eq!(place.scheme(), "etcd");
/// assert!(matches!(Place::try_from("/run/lock")?, Place::Directory(_)));
/// assert!("gbp://".parse::<Place>().is_err());
/// # Ok::<(), grouplock_room::RoomError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Place {
    /// A directory of this machine.
    Directory(PathBuf),
    /// Servers. The backend of the scheme reaches them.
    Servers {
        /// The part before `://`.
        scheme: String,
        /// The `host:port` pairs, at least one.
        hosts: Vec<String>,
        /// The part after the hosts, up to the question mark. It is empty, or begins with a slash
        /// and does not end with one.
        path: String,
        /// The part after the question mark, in the given order.
        options: Vec<(String, String)>,
    },
}

impl Place {
    /// The default on this machine: for root the rooms of the [whole machine](Place::system), for
    /// others the rooms of the [user](Place::of_user). It does not depend on environment variables.
    /// So a login, a cron job and a service of one user find the same rooms.
    ///
    /// # Errors
    /// On systems other than Unix.
    pub fn local() -> Result<Self, RoomError> {
        #[cfg(unix)]
        return match nix::unistd::geteuid().as_raw() {
            0 => Ok(Place::system()),
            uid => Ok(Place::of_user(uid)),
        };
        #[cfg(not(unix))]
        Err(RoomError::Unsupported { backend: "directory", what: "rooms of a user".to_owned() })
    }

    /// The rooms of the whole machine: `/run/grouplock`. They are for root and for the group of the
    /// directory.
    pub fn system() -> Self {
        Place::Directory(PathBuf::from("/run/grouplock"))
    }

    /// The rooms of a user: `/run/lock/grouplock-UID`. On machines where only some users may write
    /// to `/run/lock`: `/tmp/grouplock-UID`.
    pub fn of_user(uid: u32) -> Self {
        Place::Directory(public().join(format!("{OF_USER}{uid}")))
    }

    /// The rooms of a group, by its number. The directory is next to the directories of users.
    pub fn of_group(gid: u32) -> Self {
        Place::Directory(public().join(format!("{OF_GROUP}{gid}")))
    }

    /// The scheme; `file` for a directory.
    pub fn scheme(&self) -> &str {
        match self {
            Place::Directory(_) => "file",
            Place::Servers { scheme, .. } => scheme,
        }
    }
}

/// The beginnings of the names of directories of users and groups.
const OF_USER: &str = "grouplock-";
const OF_GROUP: &str = "grouplock-group-";

/// A directory in which every user may create a directory, the same for all processes. `/run` is in
/// memory and is never cleaned up. `$XDG_RUNTIME_DIR` disappears at logout, and logout also deletes
/// files in `/dev/shm`.
fn public() -> &'static Path {
    #[cfg(unix)]
    if let Ok(facts) = std::fs::symlink_metadata("/run/lock") {
        use std::os::unix::fs::MetadataExt;
        if facts.is_dir() && facts.uid() == 0 && facts.mode() & 0o1002 == 0o1002 {
            return Path::new("/run/lock");
        }
    }
    Path::new("/tmp")
}

/// The owner that the name of a directory promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    User(u32),
    Group(u32),
}

impl Owner {
    /// `None` if the name promises nothing.
    pub(crate) fn by_name(directory: &Path) -> Option<Self> {
        let parent = directory.parent()?;
        if parent != Path::new("/run/lock") && parent != Path::new("/tmp") {
            return None;
        }
        let name = directory.file_name()?.to_str()?;
        match name.strip_prefix(OF_GROUP) {
            Some(gid) => gid.parse().ok().map(Owner::Group),
            None => name.strip_prefix(OF_USER)?.parse().ok().map(Owner::User),
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Directory(path) => path.display().fmt(f),
            Place::Servers { scheme, hosts, path, options } => {
                write!(f, "{scheme}://{}{path}", hosts.join(","))?;
                for (index, (name, value)) in options.iter().enumerate() {
                    write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
                }
                Ok(())
            }
        }
    }
}

impl FromStr for Place {
    type Err = RoomError;

    fn from_str(text: &str) -> Result<Self, RoomError> {
        let bad = |reason| RoomError::BadPlace { place: text.to_owned(), reason };
        if text.is_empty() {
            return Err(bad(
                "it is empty; expected a directory, gbp://host:port or etcd://host:port",
            ));
        }
        if let Some(path) = text.strip_prefix("file:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if !path.starts_with('/') {
                return Err(bad("expected an absolute path after `file:`"));
            }
            return Ok(Place::Directory(PathBuf::from(path)));
        }
        // A text that begins with a slash is a path, even if it contains `://`.
        let servers = text.split_once("://").filter(|_| !text.starts_with('/'));
        let Some((scheme, rest)) = servers else {
            return Ok(Place::Directory(PathBuf::from(text)));
        };
        let word = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '+');
        if !word {
            return Err(bad("expected a word in small letters before `://`, such as gbp or etcd"));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (hosts, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        if let Some((_, hosts)) = hosts.rsplit_once('@') {
            // The message must not contain them either.
            return Err(RoomError::BadPlace {
                place: format!("{scheme}://…@{hosts}{path}"),
                reason: "it must not contain names and passwords, because every user can read them",
            });
        }
        let hosts: Vec<String> = hosts.split(',').map(str::to_owned).collect();
        if !hosts.iter().all(|host| has_port(host)) {
            return Err(bad("expected host:port after `://`, or several separated by commas"));
        }
        let path = path.trim_end_matches('/').to_owned();
        let options = query
            .split('&')
            .filter(|option| !option.is_empty())
            .map(|option| match option.split_once('=') {
                Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
                _ => Err(bad("expected options after `?`, such as ?ttl=10&cacert=/etc/ca.pem")),
            })
            .collect::<Result<_, _>>()?;
        Ok(Place::Servers { scheme: scheme.to_owned(), hosts, path, options })
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        !name.is_empty() && !name.contains(' ') && port.parse::<u16>().is_ok_and(|port| port != 0)
    })
}

impl TryFrom<&str> for Place {
    type Error = RoomError;

    fn try_from(text: &str) -> Result<Self, RoomError> {
        text.parse()
    }
}

impl TryFrom<&String> for Place {
    type Error = RoomError;

    fn try_from(text: &String) -> Result<Self, RoomError> {
        text.parse()
    }
}

impl From<&Place> for Place {
    fn from(place: &Place) -> Self {
        place.clone()
    }
}

impl From<PathBuf> for Place {
    fn from(path: PathBuf) -> Self {
        Place::Directory(path)
    }
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Place::Directory(path.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_reads_as_it_is_written() {
        for text in [
            "/run/x",
            "/run/://h:1",
            "relative/dir",
            "gbp://h:1",
            "etcd://a:1,b:2",
            "etcd://[::1]:2379",
            "etcd://a:1/rooms/of/ours",
            "etcd://a:1?ttl=10",
            "etcd://a:1,b:2/p?cacert=/etc/ca.pem&ttl=10",
        ] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        assert_eq!("file:///run/x".parse::<Place>().unwrap().to_string(), "/run/x");
        assert_eq!("file:/run/x".parse::<Place>().unwrap().to_string(), "/run/x");
    }

    #[test]
    fn the_name_of_a_directory_says_whose_it_is() {
        let owner = |place| match place {
            Place::Directory(path) => Owner::by_name(&path),
            Place::Servers { .. } => None,
        };
        assert_eq!(owner(Place::of_user(7)), Some(Owner::User(7)));
        assert_eq!(owner(Place::of_group(7)), Some(Owner::Group(7)));
        assert_eq!(owner(Place::system()), None);
        for path in ["/home/grouplock-7", "/tmp/grouplock-x", "/tmp/other-7", "/tmp/grouplock-7/r"]
        {
            assert_eq!(Owner::by_name(Path::new(path)), None, "{path}");
        }
    }

    #[test]
    fn a_password_is_refused_and_not_repeated() {
        let message = "etcd://me:se@cret@a:1/p".parse::<Place>().unwrap_err().to_string();
        assert!(message.contains("`etcd://…@a:1/p`") && message.contains("passwords"), "{message}");
        assert!(!message.contains("cret"), "{message}");
    }

    #[test]
    fn what_is_no_place_is_named_with_what_was_expected() {
        for (text, expected) in [
            ("", "a directory"),
            ("etcd://", "host:port"),
            ("etcd://host", "host:port"),
            ("etcd://host:0", "host:port"),
            ("etcd://host:99999", "host:port"),
            ("etcd://a:1,,b:2", "host:port"),
            ("etcd://a:1?ttl", "options"),
            ("etcd://a:1?=3", "options"),
            ("E T://a:1", "a word in small letters"),
            ("file:relative", "absolute path"),
        ] {
            let message = text.parse::<Place>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }
}
