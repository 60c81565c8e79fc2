//! Features that this program was built without. The error says how to build them in.

use grouplock_room::{Opener, Place, Room, RoomError, RoomName, RoomOptions};

/// The arguments of a missing command: anything.
#[cfg(not(all(feature = "gbp", feature = "top")))]
#[derive(Debug, clap::Args)]
pub(crate) struct Arguments {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _ignored: Vec<std::ffi::OsString>,
}

/// How to get `what`.
pub(crate) fn needs(what: &str, feature: &str) -> String {
    format!(
        "{what} needs the feature `{feature}`, which this program was built without; \
         in a checkout, `cargo install --path crates/grouplock-cli --features {feature}` builds it in"
    )
}

/// Replaces the opener of a scheme that needs a feature.
pub(crate) struct MissingBackend {
    /// The scheme. The feature has the same name.
    scheme: &'static str,
}

impl MissingBackend {
    pub(crate) fn of(scheme: &'static str) -> Self {
        MissingBackend { scheme }
    }

    fn error(&self, place: &Place) -> RoomError {
        RoomError::Backend(needs(&format!("`{place}`"), self.scheme).into())
    }
}

impl Opener for MissingBackend {
    fn scheme(&self) -> &'static str {
        self.scheme
    }

    fn open(&self, place: &Place, _: &RoomName, _: &RoomOptions) -> Result<Room, RoomError> {
        Err(self.error(place))
    }

    fn list(&self, place: &Place) -> Result<Vec<RoomName>, RoomError> {
        Err(self.error(place))
    }
}

#[cfg(test)]
mod tests {
    use grouplock_room::Places;

    use super::*;

    #[test]
    fn a_place_whose_feature_is_missing_says_how_to_build_it_in() {
        let places = Places::new().with(MissingBackend::of("etcd"));
        let listed = places.list("etcd://one:2379").map(drop);
        let opened = places.open("etcd://one:2379", "r", &RoomOptions::new()).map(drop);
        for result in [listed, opened] {
            let message = result.expect_err("it cannot be reached").to_string();
            assert!(message.contains("`etcd://one:2379`"), "{message}");
            assert!(message.contains("--features etcd"), "{message}");
        }
    }
}
