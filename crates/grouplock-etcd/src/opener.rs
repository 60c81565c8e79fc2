//! The scheme `etcd`.

use std::collections::BTreeSet;
use std::sync::Arc;

use grouplock_room::{Opener, Place, Policy, Room, RoomError, RoomName, RoomOptions};

use crate::client::Client;
use crate::keys::Span;
use crate::room::EtcdRoom;
use crate::settings::Settings;

/// Opens rooms on etcd: `etcd://host:port[,host:port…][/prefix][?option=value&…]`.
pub fn opener() -> impl Opener {
    EtcdOpener
}

struct EtcdOpener;

fn client(place: &Place) -> Result<Arc<Client>, RoomError> {
    Ok(Client::of(Settings::of(place)?)?)
}

impl Opener for EtcdOpener {
    fn scheme(&self) -> &'static str {
        "etcd"
    }

    fn open(
        &self,
        place: &Place,
        name: &RoomName,
        options: &RoomOptions,
    ) -> Result<Room, RoomError> {
        if let Some(policy @ (Policy::Batch { .. } | Policy::Priority { .. })) = options.policy {
            let what = format!("the policy {policy}; their policy is always fifo");
            return Err(RoomError::Unsupported { backend: "etcd", what });
        }
        let room = EtcdRoom::new(client(place)?, name.clone(), options.command.as_deref());
        if options.existing && !room.exists()? {
            let (name, place) = (name.to_string(), place.to_string());
            return Err(RoomError::NoSuchRoom { name, place });
        }
        Ok(Room::from_backend(Arc::new(room)))
    }

    fn list(&self, place: &Place) -> Result<Vec<RoomName>, RoomError> {
        let client = client(place)?;
        let base = format!("{}/", client.settings.prefix);
        let (asker, span) = (Arc::clone(&client), Span::beginning_with(&base));
        let range = client
            .wait_for(async move { asker.rpc.range(&span, true, 0, asker.patience()).await })?;
        let name = |key: &[u8]| {
            let rest = std::str::from_utf8(key.strip_prefix(base.as_bytes())?).ok()?;
            let (name, key) = rest.split_once('/')?;
            // A tombstone alone does not make a room.
            RoomName::decode(name).filter(|_| !key.starts_with("t/"))
        };
        let names: BTreeSet<_> = range.kvs.iter().filter_map(|kv| name(&kv.key)).collect();
        Ok(names.into_iter().collect())
    }

    fn remove(&self, place: &Place, name: &RoomName) -> Result<(), RoomError> {
        EtcdRoom::new(client(place)?, name.clone(), None).remove()
    }
}
