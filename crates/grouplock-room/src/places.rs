//! The kinds of rooms that a program can open.

use std::fmt;

use crate::backend::Opener;
use crate::error::RoomError;
use crate::name::RoomName;
use crate::place::Place;
use crate::room::{Room, RoomOptions};
use crate::snapshot::Snapshot;

/// The number of threads that take snapshots at the same time.
const SNAPSHOT_THREADS: usize = 16;

/// The name of a room and its snapshot.
type NamedSnapshot = (RoomName, Result<Snapshot, RoomError>);

/// The kinds of rooms that a program can open: rooms in directories, and the rooms of the
/// [`Opener`]s that it adds.
///
/// ```no_run
/// use grouplock_room::{Places, RoomOptions};
///
/// let places = Places::new(); // .with(grouplock_etcd::opener())
/// let room = places.open("/run/grouplock", "build", &RoomOptions::new())?;
/// # Ok::<(), grouplock_room::RoomError>(())
/// ```
#[derive(Default)]
pub struct Places {
    openers: Vec<Box<dyn Opener>>,
}

impl Places {
    /// Only rooms in directories.
    pub fn new() -> Self {
        Places::default()
    }

    /// Adds the rooms of `opener`. It replaces an earlier opener of the same scheme.
    #[must_use]
    pub fn with(mut self, opener: impl Opener + 'static) -> Self {
        self.openers.retain(|known| known.scheme() != opener.scheme());
        self.openers.push(Box::new(opener));
        self
    }

    /// Opens a room.
    ///
    /// # Errors
    /// [`RoomError::NoBackend`] if there is no opener for the place; otherwise the errors of the
    /// backend.
    pub fn open<P>(&self, place: P, name: &str, options: &RoomOptions) -> Result<Room, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        let place = place.try_into()?;
        let name = RoomName::new(name)?;
        let room = match &place {
            Place::Directory(directory) => crate::file::open(directory, &name, options),
            Place::Servers { .. } => self.opener(&place)?.open(&place, &name, options),
        };
        Ok(room?.at(&place, &name))
    }

    /// The names of the rooms in a place, sorted. A directory that does not exist has no rooms.
    ///
    /// # Errors
    /// As [`open`](Places::open).
    pub fn list<P>(&self, place: P) -> Result<Vec<RoomName>, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        let place = place.try_into()?;
        let mut names = match &place {
            Place::Directory(directory) => crate::file::list(directory)?,
            Place::Servers { .. } => self.opener(&place)?.list(&place)?,
        };
        names.sort();
        Ok(names)
    }

    /// Takes snapshots of all rooms in a place, sorted by name. It takes several at the same time,
    /// because servers take time to answer. Rooms that are removed in the meantime are left out.
    ///
    /// # Errors
    /// As [`list`](Places::list). A failed snapshot has its own error.
    pub fn snapshots<P>(&self, place: P) -> Result<Vec<NamedSnapshot>, RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        self.look_at_all(&place.try_into()?)
    }

    fn look_at_all(&self, place: &Place) -> Result<Vec<NamedSnapshot>, RoomError> {
        let names = self.list(place)?;
        let options = RoomOptions::new().look_only();
        let look = |name: &RoomName| {
            let room = self.open(place, name.as_str(), &options);
            (name.clone(), room.and_then(|room| room.snapshot()))
        };
        let look_at = &|names: &[RoomName]| names.iter().map(look).collect::<Vec<_>>();
        let mut seen: Vec<_> = std::thread::scope(|scope| {
            let shares = names.chunks(names.len().div_ceil(SNAPSHOT_THREADS).max(1));
            let lookers: Vec<_> = shares.map(|share| scope.spawn(move || look_at(share))).collect();
            let seen = lookers.into_iter().map(std::thread::ScopedJoinHandle::join);
            seen.flat_map(|seen| seen.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                .collect()
        });
        seen.retain(|(_, seen)| {
            !matches!(seen, Err(RoomError::NoSuchRoom { .. } | RoomError::Removed { .. }))
        });
        Ok(seen)
    }

    /// Removes a room that has no participants. Handles that are still open report it, or create
    /// the room again at the next entry.
    ///
    /// # Errors
    /// [`RoomError::InUse`] if a process is inside or waits; otherwise as [`open`](Places::open).
    pub fn remove<P>(&self, place: P, name: &str) -> Result<(), RoomError>
    where
        P: TryInto<Place>,
        RoomError: From<P::Error>,
    {
        let place = place.try_into()?;
        let name = RoomName::new(name)?;
        match &place {
            Place::Directory(directory) => crate::file::remove(directory, &name),
            Place::Servers { .. } => self.opener(&place)?.remove(&place, &name),
        }
    }

    fn opener(&self, place: &Place) -> Result<&dyn Opener, RoomError> {
        let found = self.openers.iter().find(|opener| opener.scheme() == place.scheme());
        found.map(|opener| &**opener).ok_or_else(|| {
            let schemes = self.openers.iter().map(|opener| format!(", {}://", opener.scheme()));
            RoomError::NoBackend {
                place: place.to_string(),
                scheme: place.scheme().to_owned(),
                known: "directories".to_owned() + &schemes.collect::<String>(),
            }
        })
    }
}

impl fmt::Debug for Places {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let schemes = self.openers.iter().map(|opener| opener.scheme());
        f.debug_list().entry(&"file").entries(schemes).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists one room, of this name.
    struct Lists(&'static str);

    impl Opener for Lists {
        fn scheme(&self) -> &'static str {
            "lists"
        }

        fn open(&self, _: &Place, _: &RoomName, _: &RoomOptions) -> Result<Room, RoomError> {
            Err(RoomError::Withdrawn)
        }

        fn list(&self, _: &Place) -> Result<Vec<RoomName>, RoomError> {
            Ok(vec![RoomName::new(self.0)?])
        }
    }

    #[test]
    fn an_opener_replaces_the_one_of_its_scheme() {
        let places = Places::new().with(Lists("one")).with(Lists("other"));
        let names = places.list("lists://host:1").unwrap();
        assert_eq!(names, [RoomName::new("other").unwrap()]);
    }
}
