//! The status page: a few documents over HTTP/1.1, GET only, one request per connection.
//!
//! It is written by hand because it needs so little: it reads no bodies, uses only method, path and
//! host of a request, and a request must be small and fast. An HTTP library would be a new
//! dependency of this crate.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::accept::Shared;
use super::descriptors::MOST_READERS;
use super::engine::Input;
use super::metrics::Gauges;
use super::strangers::Strangers;

/// The longest request, in bytes.
const LONGEST: usize = 8 * 1024;
/// How long a request may take, and its answer.
const PATIENCE: Duration = Duration::from_secs(5);

const PAGE: &str = include_str!("page/index.html");

struct Answer {
    status: &'static str,
    kind: &'static str,
    body: String,
}

impl Answer {
    fn text(status: &'static str, body: &str) -> Self {
        Answer { status, kind: "text/plain; charset=utf-8", body: format!("{body}\n") }
    }

    fn unavailable() -> Self {
        Answer::text("503 Service Unavailable", "this member does not answer, or is stopping")
    }
}

/// Serves requests, forever.
pub(super) async fn serve(shared: Arc<Shared>, listener: Arc<TcpListener>) {
    let readers = Strangers::new(MOST_READERS);
    loop {
        let Ok((stream, address)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Some(reader) = readers.admit().await else { return };
        let shared = shared.clone();
        tokio::spawn(async move {
            tokio::select! {
                served = serve_one(&shared, stream) => if let Err(error) = served {
                    tracing::debug!("status page: {address}: {error}");
                },
                () = reader.evicted() => tracing::debug!("status page: {address} made room for others"),
            }
        });
    }
}

async fn serve_one(shared: &Shared, mut stream: TcpStream) -> std::io::Result<()> {
    let local = stream.local_addr()?;
    let answer = match timeout(PATIENCE, request(&mut stream)).await {
        Err(_) => Answer::text("408 Request Timeout", "the request took too long"),
        Ok(request) => match request? {
            None => Answer::text("431 Request Header Fields Too Large", "the request is too long"),
            Some(request) => answer(shared, &request, local).await,
        },
    };
    let Answer { status, kind, body } = answer;
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nReferrer-Policy: no-referrer\r\n\
         Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; \
         img-src data:; connect-src 'self'; frame-ancestors 'none'\r\nConnection: close\r\n\r\n",
        body.len()
    );
    let write = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(body.as_bytes()).await?;
        stream.shutdown().await?;
        // Reads the rest of the request. Otherwise the system would drop the answer with the
        // connection.
        let mut rest = (&mut stream).take(8 * LONGEST as u64);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    timeout(PATIENCE, write).await.unwrap_or(Ok(0)).map(drop)
}

/// The head of the request; `None` if it is too long.
async fn request(stream: &mut TcpStream) -> std::io::Result<Option<String>> {
    let mut bytes = Vec::new();
    loop {
        let mut chunk = [0; 1024];
        let read = stream.read(&mut chunk).await?;
        bytes.extend_from_slice(&chunk[..read]);
        if bytes.len() > LONGEST {
            return Ok(None);
        }
        if read == 0 || bytes.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(Some(String::from_utf8_lossy(&bytes).into_owned()));
        }
    }
}

async fn answer(shared: &Shared, request: &str, local: SocketAddr) -> Answer {
    let mut lines = request.split("\r\n");
    let line = lines.next().unwrap_or_default();
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Answer::text("400 Bad Request", "expected a request of HTTP/1.1");
    };
    if !version.starts_with("HTTP/1.") {
        return Answer::text("505 HTTP Version Not Supported", "expected HTTP/1.1");
    }
    if method != "GET" {
        return Answer::text("405 Method Not Allowed", "expected GET");
    }
    let host = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("host"))
        .map(|(_, value)| value.trim());
    if local.ip().is_loopback() && !host.is_some_and(is_here) {
        return Answer::text("403 Forbidden", "expected the host to be localhost or an address");
    }
    let path = target.split('?').next().unwrap_or_default();
    match path {
        "/" => Answer { status: "200 OK", kind: "text/html; charset=utf-8", body: PAGE.to_owned() },
        "/healthz" => match show(shared, false).await {
            Some(_) => Answer::text("200 OK", "ok"),
            None => Answer::unavailable(),
        },
        "/metrics" => match show(shared, false).await {
            Some((gauges, _)) => Answer {
                status: "200 OK",
                kind: "text/plain; version=0.0.4; charset=utf-8",
                body: shared.metrics.text(&gauges),
            },
            None => Answer::unavailable(),
        },
        "/status.json" => match show(shared, true).await.and_then(|(_, status)| status) {
            Some(status) => {
                Answer { status: "200 OK", kind: "application/json", body: status.to_string() }
            }
            None => Answer::unavailable(),
        },
        _ => Answer::text("404 Not Found", "expected /, /status.json, /metrics or /healthz"),
    }
}

/// Whether the host is this machine. A foreign web page whose name resolves to this machine must
/// not read the status.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || address.parse::<IpAddr>().is_ok()
}

/// `None` if the engine does not answer in time. If it hangs, its inbox may be full.
async fn show(shared: &Shared, all: bool) -> Option<(Gauges, Option<serde_json::Value>)> {
    let (answer, shown) = oneshot::channel();
    let ask = async {
        shared.engine.send(Input::Show(answer, all)).await.ok()?;
        shown.await.ok()
    };
    timeout(PATIENCE, ask).await.ok()?
}
