//! How a client and a member authenticate each other.

use std::path::PathBuf;

use grouplock_room::{Place, RoomError};
use tokio_rustls::TlsConnector;

use crate::wire::{Identity, Peer};

/// The options of a place, and the variables that replace them.
const OPTIONS: [(&str, &str); 3] = [
    ("cacert", "GROUPLOCK_GBP_CACERT"),
    ("cert", "GROUPLOCK_GBP_CERT"),
    ("key", "GROUPLOCK_GBP_KEY"),
];

/// How connections are protected.
#[derive(Clone)]
pub(super) enum ClientSecurity {
    /// Plain text, only with members on this machine.
    PlainText,
    /// TLS, with certificates on both sides.
    Tls {
        connector: TlsConnector,
        /// What the certificate of the first member must be for, if not its host.
        name: Option<String>,
    },
}

impl ClientSecurity {
    pub(super) fn connector(&self) -> Option<&TlsConnector> {
        match self {
            ClientSecurity::PlainText => None,
            ClientSecurity::Tls { connector, .. } => Some(connector),
        }
    }

    /// A host of a place. It may be any member.
    pub(super) fn peer(&self, address: &str) -> Peer {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = match self {
            ClientSecurity::Tls { name: Some(name), .. } => name,
            _ => host,
        };
        Peer { address: address.to_owned(), name: name.to_owned() }
    }

    /// Reads the options of the place, then the environment.
    ///
    /// # Errors
    /// If an option is unknown, or if some of the three files are missing or wrong.
    pub(super) fn of(place: &Place) -> Result<Self, RoomError> {
        let Place::Servers { options, path, .. } = place else {
            return Ok(ClientSecurity::PlainText);
        };
        if !path.is_empty() {
            return Err(bad("the path of a gbp place", path, "there are no paths in a cluster"));
        }
        let known = |name: &str| name == "name" || OPTIONS.iter().any(|(known, _)| name == *known);
        if let Some((name, _)) = options.iter().find(|(name, _)| !known(name)) {
            let expected = "expected cacert, cert, key or name";
            return Err(bad("an option of a gbp place", name, expected));
        }
        let option = |name: &str| {
            options.iter().rfind(|(known, _)| known == name).map(|(_, value)| value.clone())
        };
        let files = OPTIONS.map(|(name, variable)| {
            option(name)
                .or_else(|| std::env::var(variable).ok())
                .filter(|file| !file.is_empty())
                .map(PathBuf::from)
        });
        match files {
            [None, None, None] => Ok(ClientSecurity::PlainText),
            [Some(authority), Some(certificate), Some(key)] => {
                let identity = Identity { cert: &certificate, key: &key, ca: &authority };
                let config = identity.client_config();
                let config = config.map_err(|error| RoomError::Backend(Box::new(error)))?;
                Ok(ClientSecurity::Tls { connector: config.into(), name: option("name") })
            }
            files => {
                let missing = OPTIONS.iter().zip(&files).filter(|(_, file)| file.is_none());
                let missing: Vec<_> = missing
                    .map(|((name, variable), _)| format!("{name} (or {variable})"))
                    .collect();
                let expected = "cacert, cert and key belong together";
                Err(bad("what is given for TLS without", &missing.join(", "), expected))
            }
        }
    }
}

fn bad(what: &'static str, value: &str, expected: &str) -> RoomError {
    RoomError::BadOption { what, value: format!("`{value}`"), expected: expected.to_owned() }
}
