//! etcd asked over its HTTP gateway: what the tests want of it behind the library's back.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Calls a method of etcd's gRPC interface in its JSON form. HTTP 1.0, so that the answer comes in one piece and the
/// connection ends with it.
pub(crate) fn call(
    server: SocketAddr,
    path: &str,
    request: &Value,
    patience: Duration,
) -> io::Result<Value> {
    let mut stream = TcpStream::connect_timeout(&server, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    let body = request.to_string();
    write!(stream, "POST {path} HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    if head.split(' ').nth(1) != Some("200") {
        return Err(io::Error::other(format!("{path} on {server}: {body}")));
    }
    serde_json::from_str(body).map_err(io::Error::other)
}

/// How a member sees its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) member: u64,
    pub(crate) leader: u64,
    pub(crate) term: u64,
    pub(crate) revision: i64,
}

/// Asks a member how it sees its cluster. A member without a leader says so by the number 0.
pub(crate) fn status(server: SocketAddr) -> io::Result<Status> {
    let answer = call(server, "/v3/maintenance/status", &json!({}), Duration::from_millis(500))?;
    Ok(Status {
        member: number(&answer["header"]["member_id"]),
        leader: number(&answer["leader"]),
        term: number(&answer["raftTerm"]),
        revision: number(&answer["header"]["revision"]),
    })
}

/// A number as the gateway writes it: as a string, and not at all if it is 0.
pub(crate) fn number<N: std::str::FromStr + Default>(value: &Value) -> N {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}
