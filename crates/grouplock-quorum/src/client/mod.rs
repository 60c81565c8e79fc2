//! Rooms on a GBP cluster, for those who enter them.
//!
//! [`opener`] is what [`Places`](grouplock_room::Places) needs to open rooms at `gbp://host:port[,host:port…]`. The hosts are
//! members of the cluster; one that can be reached is enough, as it names the others. How such rooms work and what
//! they promise is told in `docs/gbp-cluster.md`.
//!
//! * [`driver`]: the task that talks to the members, one per process and place.
//! * [`entry`], [`decision`]: a request in its hands, and whether it has to wait. · [`question`], [`parts`], [`view`]: what members see, put together.
//! * [`link`], [`security`]: the connection to a member.

mod about;
mod clock;
mod connect;
mod decision;
mod driver;
mod entry;
mod link;
mod parts;
mod question;
mod room;
mod security;
mod view;

use std::sync::Arc;

use grouplock_room::{Opener, Place, Policy, Room, RoomError, RoomName, RoomOptions};

use connect::Client;
use room::GbpRoom;

/// Opens rooms on GBP clusters, at `gbp://host:port[,host:port…]`.
///
/// Without anything else it talks in plain text, and only to members on this machine. For members elsewhere it needs
/// three PEM files: the authority that signed the members' certificates, a certificate of its own, and its key. They are
/// named by the place, `gbp://host:port?cacert=FILE&cert=FILE&key=FILE`, or by the variables `GROUPLOCK_GBP_CACERT`,
/// `GROUPLOCK_GBP_CERT` and `GROUPLOCK_GBP_KEY`. The certificate of the member that is dialled first has to be for the
/// host in the place, or for what the option `name` says.
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
        // Who only looks finds out by looking.
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
