//! The file `node.toml`: the configuration of a member.

use std::fmt::Display;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use grouplock_room::parse_duration;
use serde::Deserialize;
use thiserror::Error;

use crate::name::MemberId;
use crate::rank::Precedence;
use crate::settings::{Admission, Settings, Votes};
use crate::wire::{Cluster, CoterieKind, Peer};

/// The configuration of a member, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Which member this is.
    pub id: MemberId,
    /// Where it listens for members and clients.
    pub listen: SocketAddr,
    /// Where its data are.
    pub data: PathBuf,
    /// Where it shows its state over HTTP.
    pub status: Option<SocketAddr>,
    /// What all members must agree on.
    pub cluster: Cluster,
    /// How connections are protected.
    pub security: Security,
}

/// How connections are protected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Security {
    /// Plain text, only on this machine.
    Plain,
    /// TLS, with certificates on both sides.
    Tls {
        /// This member's certificate and those between it and the authority, PEM.
        cert: PathBuf,
        /// Its key, PEM.
        key: PathBuf,
        /// The authority for members and clients, PEM.
        ca: PathBuf,
    },
}

/// An error in a configuration.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read `{path}`: {source}", path = .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
    /// It is not TOML, has an unknown key, or lacks a key.
    #[error("`{path}` is not a configuration: {why}", path = .path.display())]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Where the error is, and which.
        why: String,
    },
    /// A value is not possible.
    #[error("`{path}`: {key} cannot be {value}: expected {expected}", path = .path.display())]
    Bad {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// The possible values.
        expected: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    id: u16,
    listen: Option<String>,
    data: PathBuf,
    status: Option<String>,
    #[serde(default)]
    status_public: bool,
    cluster: FileCluster,
    tls: FileTls,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileCluster {
    name: String,
    members: Vec<FileMember>,
    coterie: String,
    policy: Option<String>,
    admission: Option<String>,
    votes: Option<String>,
    lease: Option<String>,
    retry: Option<String>,
    clock_tolerance: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileMember {
    address: String,
    name: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileTls {
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    ca: Option<PathBuf>,
    #[serde(default)]
    plaintext: bool,
}

/// A key with an impossible value.
struct Wrong {
    key: String,
    value: String,
    expected: String,
}

fn wrong<T>(key: &str, value: impl Into<String>, expected: impl Into<String>) -> Result<T, Wrong> {
    Err(Wrong { key: key.to_owned(), value: value.into(), expected: expected.into() })
}

/// The same with a value from the file.
fn bad<T>(key: &str, value: impl Display, expected: impl Into<String>) -> Result<T, Wrong> {
    wrong(key, format!("`{value}`"), expected)
}

impl Config {
    /// Reads and checks a file. Paths in it are relative to its directory.
    ///
    /// # Errors
    /// The first error in the file.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Read { path: path.to_owned(), source })?;
        Self::parse(&text, path)
    }

    /// The same with the text. `path` is for messages and for relative paths.
    ///
    /// # Errors
    /// The first error in the text.
    pub fn parse(text: &str, path: &Path) -> Result<Self, ConfigError> {
        let file: File = toml::from_str(text).map_err(|error| ConfigError::Syntax {
            path: path.to_owned(),
            why: error.to_string().trim_end().to_owned(),
        })?;
        let base = path.parent().unwrap_or(Path::new(""));
        check(&file, base).map_err(|Wrong { key, value, expected }| ConfigError::Bad {
            path: path.to_owned(),
            key,
            value,
            expected,
        })
    }

    /// How many members there are.
    pub fn members(&self) -> u16 {
        self.cluster.members.len() as u16
    }
}

fn check(file: &File, base: &Path) -> Result<Config, Wrong> {
    let security = security(&file.tls, base)?;
    let plain = security == Security::Plain;
    let cluster = cluster(&file.cluster, plain)?;
    let members = cluster.members.len();
    let Some(me) = cluster.members.get(usize::from(file.id)) else {
        return wrong(
            "id",
            file.id.to_string(),
            format!("0 to {}: an index in members", members - 1),
        );
    };
    let listen = match &file.listen {
        Some(listen) => listening("listen", listen)?,
        None => listening("listen (by default this member's address)", &me.address)?,
    };
    if plain && !listen.ip().is_loopback() {
        return bad(
            "listen",
            listen,
            "a loopback address such as 127.0.0.1, as tls.plaintext is true",
        );
    }
    let status = file.status.as_deref().map(|status| listening("status", status)).transpose()?;
    if let Some(status) = status
        && !status.ip().is_loopback()
        && !file.status_public
    {
        return bad(
            "status",
            status,
            "a loopback address such as 127.0.0.1, or status_public = true: anyone who reaches it sees all rooms",
        );
    }
    let data = base.join(&file.data);
    Ok(Config { id: MemberId(file.id), listen, data, status, cluster, security })
}

fn security(tls: &FileTls, base: &Path) -> Result<Security, Wrong> {
    match (tls.plaintext, &tls.cert, &tls.key, &tls.ca) {
        (true, None, None, None) => Ok(Security::Plain),
        (false, Some(cert), Some(key), Some(ca)) => {
            Ok(Security::Tls { cert: base.join(cert), key: base.join(key), ca: base.join(ca) })
        }
        (true, ..) => wrong("tls.plaintext", "true", "no cert, key or ca beside it"),
        (false, cert, key, ca) => {
            let missing = [("cert", cert), ("key", key), ("ca", ca)];
            let missing = missing.iter().find(|(_, path)| path.is_none()).map_or("cert", |m| m.0);
            wrong(
                &format!("tls.{missing}"),
                "missing",
                "files for cert, key and ca, or plaintext = true for members on one machine",
            )
        }
    }
}

fn cluster(file: &FileCluster, plain: bool) -> Result<Cluster, Wrong> {
    if file.name.is_empty() || file.name.len() > 64 || file.name.chars().any(char::is_control) {
        return bad("cluster.name", &file.name, "1 to 64 printable characters");
    }
    let mut members: Vec<Peer> = Vec::new();
    for (number, member) in file.members.iter().enumerate() {
        let key = format!("cluster.members[{number}].address");
        let Some(host) = host_of(&member.address) else {
            return bad(&key, &member.address, "host:port");
        };
        if plain && !host.parse().is_ok_and(|address: IpAddr| address.is_loopback()) {
            return bad(
                &key,
                &member.address,
                "a loopback address such as 127.0.0.1:7100, as tls.plaintext is true",
            );
        }
        if members.iter().any(|other| other.address == member.address) {
            return bad(&key, &member.address, "each member once");
        }
        let name = member.name.clone().unwrap_or_else(|| host.to_owned());
        if rustls::pki_types::ServerName::try_from(name.as_str()).is_err() {
            let key = format!("cluster.members[{number}].name");
            return bad(&key, name, "a host name or IP address, as in certificates");
        }
        members.push(Peer { address: member.address.clone(), name });
    }
    let Ok(coterie) = file.coterie.parse::<CoterieKind>() else {
        return bad("cluster.coterie", &file.coterie, "`plane`, `grid` or `majority`");
    };
    let count = u16::try_from(members.len()).unwrap_or(u16::MAX);
    if let Err(error) = coterie.coterie(count) {
        let sizes = "plane: 3, 7, 13, 21 or 31 members; grid: a product such as 4, 6 or 9; majority: any number";
        return wrong(
            "cluster.coterie",
            format!("`{coterie}` with {} members", members.len()),
            format!("{sizes} ({error})"),
        );
    }
    let settings = settings(file)?;
    let tolerance = time("cluster.clock_tolerance", file.clock_tolerance.as_deref(), "5s")?;
    if tolerance.is_zero() {
        return wrong("cluster.clock_tolerance", "0", "more than 0, such as `5s`");
    }
    Ok(Cluster { name: file.name.clone(), members, coterie, settings, clock_tolerance: tolerance })
}

fn settings(file: &FileCluster) -> Result<Settings, Wrong> {
    let retry = time("cluster.retry", file.retry.as_deref(), "1s")?;
    let lease = time("cluster.lease", file.lease.as_deref(), "10s")?;
    if retry < Duration::from_millis(10) {
        return wrong("cluster.retry", format!("{} ms", retry.as_millis()), "at least `10ms`");
    }
    if lease < retry * 4 {
        return wrong(
            "cluster.lease",
            format!("{} ms", lease.as_millis()),
            format!("at least four times cluster.retry, which is {} ms", retry.as_millis()),
        );
    }
    let policy = file.policy.as_deref().unwrap_or("fifo");
    let precedence = match policy.split_once(':') {
        None if policy == "fifo" => Some(Precedence::Aged { weight: Duration::ZERO }),
        None if policy == "static" => Some(Precedence::Static),
        Some(("priority", weight)) => duration(weight).map(|weight| Precedence::Aged { weight }),
        _ => None,
    };
    let Some(precedence) = precedence else {
        return bad(
            "cluster.policy",
            policy,
            "`fifo`, `priority:TIME` with what a step of priority is worth, such as `priority:10s`, or `static`",
        );
    };
    let fifo = precedence == Precedence::Aged { weight: Duration::ZERO };
    let admission = match file.admission.as_deref() {
        Some("together") if !fifo => Admission::Together,
        // The paper's precedence with the paper's rule of admission; else the rule of all other
        // rooms.
        None if precedence == Precedence::Static => Admission::Together,
        None | Some("in-order") => Admission::InOrder,
        Some(other) => {
            let expected = "`in-order`, or `together`, which does not go with the policy `fifo`";
            return wrong("cluster.admission", format!("`{other}` with `{policy}`"), expected);
        }
    };
    let votes = match file.votes.as_deref() {
        None | Some("any") => Votes::AnyQuorum,
        Some("own") => Votes::OwnQuorum,
        Some(other) => {
            let expected = "`any`, or `own` for the votes of a member's own quorum only";
            return bad("cluster.votes", other, expected);
        }
    };
    Ok(Settings { precedence, admission, votes, retry, lease: Some(lease) })
}

/// The host of `host:port`, without the brackets of an IPv6 address.
fn host_of(address: &str) -> Option<&str> {
    let (host, port) = address.rsplit_once(':')?;
    port.parse::<u16>().ok().filter(|port| *port != 0)?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    (!host.is_empty() && !host.contains([' ', '/', '@'])).then_some(host)
}

fn listening(key: &str, text: &str) -> Result<SocketAddr, Wrong> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    match found {
        Some(address) => Ok(address),
        None => bad(key, text, "an address of this machine and a port, such as 127.0.0.1:7100"),
    }
}

fn time(key: &str, text: Option<&str>, default: &str) -> Result<Duration, Wrong> {
    let text = text.unwrap_or(default);
    match duration(text) {
        Some(time) if time <= Duration::from_secs(86_400) => Ok(time),
        _ => bad(key, text, "a time of at most a day such as `10s` or `500ms`"),
    }
}

/// A time with its unit.
fn duration(text: &str) -> Option<Duration> {
    parse_duration(text).ok().filter(|_| text.ends_with('s'))
}
