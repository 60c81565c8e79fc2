//! Where the rooms are that a command is about.

use clap::Args;
use grouplock_room::{Place, Places, RoomError};

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
    /// `$XDG_RUNTIME_DIR/grouplock`, for root /run/grouplock.
    #[arg(long, value_name = "PLACE", env = "GROUPLOCK_AT", hide_env_values = true)]
    at: Option<String>,
}

impl At {
    /// The place, a directory as an absolute path: it is handed on to commands that may run elsewhere.
    pub(crate) fn place(&self) -> Result<Place, RoomError> {
        let place = match &self.at {
            Some(text) => text.parse()?,
            None => Place::local()?,
        };
        match place {
            Place::Directory(path) => {
                let absolute = std::path::absolute(&path);
                Ok(Place::Directory(absolute.unwrap_or(path)))
            }
            servers => Ok(servers),
        }
    }
}
