//! Calls of etcd over its HTTP gateway, which bypass the library.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Calls a method of etcd's gRPC interface in its JSON form. HTTP 1.0 delivers the answer in one
/// piece and then closes the connection.
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

/// The deletions of keys with this prefix, from a revision on, each with its revision.
pub(crate) fn deletions(
    server: SocketAddr,
    prefix: &str,
    revision: i64,
) -> io::Result<Vec<(String, i64)>> {
    let mut stream = TcpStream::connect_timeout(&server, Duration::from_secs(5))?;
    // The server sends the history at once. After that, it sends only new events: none, or some all
    // the time.
    stream.set_read_timeout(Some(Duration::from_millis(300)))?;
    let end = prefix.strip_suffix('/').expect("a prefix ends so").to_owned() + "0";
    let create = json!({
        "key": STANDARD.encode(prefix), "range_end": STANDARD.encode(end),
        "start_revision": revision.to_string(), "filters": ["NOPUT"]
    });
    let body = json!({ "create_request": create }).to_string();
    write!(stream, "POST /v3/watch HTTP/1.0\r\nContent-Length: {}\r\n\r\n{body}", body.len())?;
    let until = Instant::now() + Duration::from_secs(1);
    let (mut text, mut part) = (Vec::new(), [0; 1 << 12]);
    while Instant::now() < until {
        match stream.read(&mut part) {
            Ok(0) | Err(_) => break,
            Ok(length) => text.extend_from_slice(&part[..length]),
        }
    }
    let text = String::from_utf8_lossy(&text);
    let body = text.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let answers = body.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut deleted = Vec::new();
    for answer in answers {
        for event in answer["result"]["events"].as_array().into_iter().flatten() {
            let key = STANDARD.decode(event["kv"]["key"].as_str().unwrap_or_default());
            let key = key.ok().and_then(|key| String::from_utf8(key).ok());
            deleted.extend(key.map(|key| (key, number(&event["kv"]["mod_revision"]))));
        }
    }
    Ok(deleted)
}

/// The state of the cluster, as one member knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) member: u64,
    pub(crate) leader: u64,
    pub(crate) term: u64,
    pub(crate) revision: i64,
}

/// Asks a member for the state of the cluster. A member without a leader answers with the number 0.
pub(crate) fn status(server: SocketAddr) -> io::Result<Status> {
    let answer = call(server, "/v3/maintenance/status", &json!({}), Duration::from_millis(500))?;
    Ok(Status {
        member: number(&answer["header"]["member_id"]),
        leader: number(&answer["leader"]),
        term: number(&answer["raftTerm"]),
        revision: number(&answer["header"]["revision"]),
    })
}

/// Reads a number of the gateway. It is a string, and is missing if it is 0.
pub(crate) fn number<N: std::str::FromStr + Default>(value: &Value) -> N {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or_default()
}
