//! The fence for transactions of the user.

use grouplock_room::{Guard, Place, RoomError, RoomName};

use crate::keys::{self, Keys};
use crate::settings::Settings;

/// A key in etcd that exists until this holder leaves or its lease ends at the servers, so at least
/// as long as the holding. In a transaction of your own, compare its `create_revision` with 0. If
/// it is greater, no other session is inside when etcd runs the transaction. Nothing else is
/// needed: the key is never made again.
///
/// ```no_run
/// use grouplock_room::{Places, RoomOptions};
///
/// let place = "etcd://127.0.0.1:2379";
/// let places = Places::new().with(grouplock_etcd::opener());
/// let room = places.open(place, "build", &RoomOptions::new())?;
/// let inside = room.enter("release")?;
/// let fence = grouplock_etcd::fence_key(place, "build", &inside)?;
/// // With any etcd client, or the program:
/// //     etcdctl txn <<END
/// //     create("FENCE") > "0"
/// //
/// //     put result done
/// //
/// //     END
/// println!("{}", String::from_utf8_lossy(&fence));
/// # Ok::<(), grouplock_room::RoomError>(())
/// ```
///
/// # Errors
/// If `place`, with the environment, is not a place on etcd, or `room` is not the name of a room.
pub fn fence_key(place: &str, room: &str, guard: &Guard<'_>) -> Result<Vec<u8>, RoomError> {
    let place: Place = place.parse()?;
    let settings = Settings::of(&place)?;
    let holder = guard.holder();
    let group = keys::group(guard.session(), holder.as_str());
    Ok(Keys::of(&settings.prefix, &RoomName::new(room)?).entry(&group, holder.as_str()))
}
