//! Rooms on a GBP cluster.
//!
//! [`opener`] lets [`Places`](grouplock_room::Places) open rooms at `gbp://host:port[,host:port…]`.
//! The hosts are members of the cluster. One that can be reached is enough, because it names the
//! others. `docs/gbp-rooms.md` describes how these rooms work and what they promise.
//!
//! * [`driver`]: the task that talks to the members, one per process and place.
//! * [`request`]: a request of the driver. [`driver::decision`]: whether it must wait.
//! * [`question`], [`view`]: what the members see.
//! * [`link`], [`security`]: the connection to a member.

mod connect;
mod driver;
mod link;
mod question;
mod request;
mod room;
mod security;
mod view;

use std::sync::Arc;

use grouplock_room::{Opener, Place, Policy, Room, RoomError, RoomName, RoomOptions};

use connect::Client;
use room::GbpRoom;

/// Opens rooms on GBP clusters, at `gbp://host:port[,host:port…]`.
///
/// Without options it uses plain text, and only with members on this machine. For other members it
/// needs three PEM files: the authority that signed the certificates of the members, a certificate
/// of its own, and its key. The place names them, `gbp://host:port?cacert=FILE&cert=FILE&key=FILE`,
/// or the variables `GROUPLOCK_GBP_CACERT`, `GROUPLOCK_GBP_CERT` and `GROUPLOCK_GBP_KEY` do. The
/// certificate of each host in the place must be for that host, or for the value of the option
/// `name`.
///
/// ```no_run
/// use grouplock_room::{Places, RoomOptions};
///
/// let places = Places::new().with(grouplock_quorum::opener());
/// let room = places.open("gbp://127.0.0.1:7101,127.0.0.1:7102", "gpu0", &RoomOptions::new())?;
/// let inside = room.enter("model A")?; // waits while another model is inside
/// println!("epoch {}", inside.epoch());
/// # Ok::<(), grouplock_room::RoomError>(())
/// ```
pub fn opener() -> impl Opener {
    Gbp
}

struct Gbp;

impl Opener for Gbp {
    fn scheme(&self) -> &'static str {
        "gbp"
    }

    fn open(
        &self,
        place: &Place,
        name: &RoomName,
        options: &RoomOptions,
    ) -> Result<Room, RoomError> {
        let client = Client::at(place)?;
        let has = view::policy(&client.cluster().settings);
        match options.policy {
            Some(asked @ Policy::Batch { .. }) => {
                let what = format!("the policy {asked}; this cluster is {has}");
                return Err(RoomError::Unsupported { backend: "gbp", what });
            }
            Some(asked) if asked != has => return Err(RoomError::PolicyMismatch { has, asked }),
            _ => {}
        }
        // A handle that only looks checks this at the first look.
        if options.existing && !options.look_only {
            client.look_at(name)?;
        }
        let room = GbpRoom::new(client, name.clone(), options);
        Ok(Room::from_backend(Arc::new(room)))
    }

    fn list(&self, place: &Place) -> Result<Vec<RoomName>, RoomError> {
        Client::at(place)?.rooms()
    }
}
