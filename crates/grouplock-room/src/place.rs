//! Where rooms live.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::error::RoomError;

/// Where a room lives: a directory of this machine, or servers.
///
/// | text | meaning |
/// |---|---|
/// | a path, `file:` before it or not | a directory on this machine |
/// | `gbp://host:port` | a member of a quorum |
/// | `etcd://host:port[,host:port…]` | an etcd cluster |
///
/// Any other `scheme://…` is understood as well and handed to the [opener](crate::Opener) registered for it.
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
    /// Servers, reached by the backend of that scheme.
    Servers {
        /// What stands before `://`.
        scheme: String,
        /// The `host:port` pairs, at least one.
        hosts: Vec<String>,
    },
}

impl Place {
    /// The default on this machine: `$XDG_RUNTIME_DIR/grouplock`, for root `/run/grouplock`.
    ///
    /// # Errors
    /// If this is not root and `XDG_RUNTIME_DIR` is not set to an absolute path. There is no fallback to `/tmp`:
    /// two programs of which only one has the variable would then use different rooms without a word.
    pub fn local() -> Result<Self, RoomError> {
        if nix::unistd::geteuid().is_root() {
            return Ok(Place::Directory(PathBuf::from("/run/grouplock")));
        }
        match std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from) {
            Some(base) if base.is_absolute() => Ok(Place::Directory(base.join("grouplock"))),
            _ => Err(RoomError::NoRuntimeDirectory),
        }
    }

    /// What kind of place it is: `file` for a directory.
    pub fn scheme(&self) -> &str {
        match self {
            Place::Directory(_) => "file",
            Place::Servers { scheme, .. } => scheme,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Directory(path) => path.display().fmt(f),
            Place::Servers { scheme, hosts } => write!(f, "{scheme}://{}", hosts.join(",")),
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
                return Err(bad("after `file:` an absolute path is expected"));
            }
            return Ok(Place::Directory(PathBuf::from(path)));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return Ok(Place::Directory(PathBuf::from(text)));
        };
        let word = scheme.starts_with(|c: char| c.is_ascii_lowercase())
            && scheme.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '+');
        if !word {
            return Err(bad(
                "before `://` a word in small letters is expected, such as gbp or etcd",
            ));
        }
        let hosts: Vec<String> = rest.split(',').map(str::to_owned).collect();
        if !hosts.iter().all(|host| has_port(host)) {
            return Err(bad(
                "after `://` one host:port is expected, or several separated by commas",
            ));
        }
        Ok(Place::Servers { scheme: scheme.to_owned(), hosts })
    }
}

fn has_port(host: &str) -> bool {
    host.rsplit_once(':').is_some_and(|(name, port)| {
        !name.is_empty()
            && !name.contains(['/', ' ', '@'])
            && port.parse::<u16>().is_ok_and(|port| port != 0)
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
        for text in ["/run/x", "relative/dir", "gbp://h:1", "etcd://a:1,b:2", "etcd://[::1]:2379"] {
            assert_eq!(text.parse::<Place>().unwrap().to_string(), text);
        }
        assert_eq!("file:///run/x".parse::<Place>().unwrap().to_string(), "/run/x");
        assert_eq!("file:/run/x".parse::<Place>().unwrap().to_string(), "/run/x");
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
            ("etcd://a:1/path", "host:port"),
            ("E T://a:1", "a word in small letters"),
            ("file:relative", "absolute path"),
        ] {
            let message = text.parse::<Place>().unwrap_err().to_string();
            assert!(message.contains(&format!("`{text}`")), "{message}");
            assert!(message.contains(expected), "{message}");
        }
    }
}
