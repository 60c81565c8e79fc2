//! Requests to the servers.
//!
//! Every attempt has a time limit. If an attempt fails, the next server gets the request. All
//! requests can be repeated, and the answer says whether one was. A server that did not answer gets
//! a new connection at its next attempt, so that nothing waits for the old one.

use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use http::uri::PathAndQuery;
use prost::Message;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_stream::StreamExt;
use tonic::client::Grpc;
use tonic::metadata::{AsciiMetadataValue, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity};
use tonic::{Code, Request, Status, Streaming};
use tonic_prost::ProstCodec;

use crate::error::{Failure, OpenError};
use crate::keys::Span;
use crate::proto::{
    AuthenticateRequest, AuthenticateResponse, DeleteRangeRequest, DeleteRangeResponse,
    LeaseGrantRequest, LeaseGrantResponse, LeaseKeepAliveRequest, LeaseKeepAliveResponse,
    LeaseRevokeRequest, LeaseRevokeResponse, MemberListRequest, MemberListResponse, RangeRequest,
    RangeResponse, TxnRequest, TxnResponse, WatchCreateRequest, WatchRequest, WatchResponse,
    WatchUnion,
};
use crate::settings::{Login, Settings};

/// The largest answer that is read.
const LARGEST: usize = 64 << 20;

/// An answer.
pub(crate) struct Answer<R> {
    pub(crate) message: R,
    /// When the attempt that was answered began.
    pub(crate) sent: Instant,
    /// When the first attempt began.
    pub(crate) first_sent: Instant,
    /// There were earlier attempts, and they may still arrive.
    pub(crate) resent: bool,
}

/// The servers of a place.
pub(crate) struct Rpc {
    place: String,
    /// First the servers that the place names, then those that the cluster named.
    servers: RwLock<Vec<Arc<Server>>>,
    tls: Option<ClientTlsConfig>,
    /// The index of the server in use.
    current: watch::Sender<usize>,
    login: Option<Login>,
    token: Mutex<Option<AsciiMetadataValue>>,
    /// How long a server has to answer.
    pub(crate) attempt: Duration,
}

struct Server {
    host: String,
    endpoint: Endpoint,
    channel: Mutex<Channel>,
}

/// What to do about an error.
enum Remedy {
    /// Every server would answer the same.
    None,
    /// The token has expired.
    LogIn,
    /// Ask another server.
    AskElsewhere,
}

impl Server {
    fn new(
        host: &str,
        tls: Option<&ClientTlsConfig>,
        attempt: Duration,
    ) -> Result<Arc<Self>, OpenError> {
        let bad = |source| OpenError::Host { host: host.to_owned(), source };
        let scheme = if tls.is_some() { "https" } else { "http" };
        let mut endpoint = Endpoint::from_shared(format!("{scheme}://{host}"))
            .map_err(bad)?
            .connect_timeout(attempt)
            .tcp_nodelay(true);
        if let Some(tls) = tls {
            endpoint = endpoint.tls_config(tls.clone()).map_err(bad)?;
        }
        let channel = Mutex::new(endpoint.connect_lazy());
        Ok(Arc::new(Server { host: host.to_owned(), endpoint, channel }))
    }
}

impl Rpc {
    /// Must be called inside a runtime: tasks make the connections. They do so at the first
    /// request.
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        // A server that stalls must not cost us the lease.
        let attempt = (settings.ttl / 6).clamp(Duration::from_millis(300), Duration::from_secs(2));
        let tls = tls(settings)?;
        let servers = settings.hosts.iter().map(|host| Server::new(host, tls.as_ref(), attempt));
        Ok(Rpc {
            place: settings.place.clone(),
            servers: RwLock::new(servers.collect::<Result<_, _>>()?),
            tls,
            current: watch::Sender::new(0),
            login: settings.login.clone(),
            token: Mutex::new(None),
            attempt,
        })
    }

    fn servers(&self) -> Vec<Arc<Server>> {
        self.servers.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn server(&self, server: usize) -> Arc<Server> {
        Arc::clone(&self.servers.read().unwrap_or_else(PoisonError::into_inner)[server])
    }

    /// Asks the cluster for its members and adds the new ones. No server is removed: one that is
    /// gone costs one attempt each time.
    pub(crate) async fn learn_members(&self, until: Instant) -> Result<(), Failure> {
        let method = "/etcdserverpb.Cluster/MemberList";
        let answer = self.call(method, MemberListRequest {}, until).await?;
        let MemberListResponse { members } = answer.message;
        let mut servers = self.servers.write().unwrap_or_else(PoisonError::into_inner);
        for url in members.iter().flat_map(|member| &member.client_urls) {
            let host = url.split_once("://").map_or(url.as_str(), |(_, host)| host);
            if !servers.iter().any(|server| server.host == host)
                && let Ok(server) = Server::new(host, self.tls.as_ref(), self.attempt)
            {
                servers.push(server);
            }
        }
        Ok(())
    }

    /// Completes when requests go to another server than this one.
    pub(crate) async fn moved_from(&self, server: usize) {
        let mut current = self.current.subscribe();
        // It is not closed: `self` owns it.
        _ = current.wait_for(|current| *current != server).await.map(drop);
    }

    /// Runs a transaction.
    pub(crate) async fn txn(
        &self,
        txn: TxnRequest,
        until: Instant,
    ) -> Result<Answer<TxnResponse>, Failure> {
        self.call("/etcdserverpb.KV/Txn", txn, until).await
    }

    /// Deletes keys.
    pub(crate) async fn delete(
        &self,
        span: Span,
        until: Instant,
    ) -> Result<Answer<DeleteRangeResponse>, Failure> {
        let request = DeleteRangeRequest { key: span.start, range_end: span.end };
        self.call("/etcdserverpb.KV/DeleteRange", request, until).await
    }

    /// Reads keys.
    pub(crate) async fn range(
        &self,
        span: &Span,
        keys_only: bool,
        limit: i64,
        until: Instant,
    ) -> Result<RangeResponse, Failure> {
        let request = RangeRequest { limit, ..span.request(keys_only) };
        self.call("/etcdserverpb.KV/Range", request, until).await.map(|answer| answer.message)
    }

    pub(crate) async fn grant(
        &self,
        request: LeaseGrantRequest,
        until: Instant,
    ) -> Result<Answer<LeaseGrantResponse>, Failure> {
        self.call("/etcdserverpb.Lease/LeaseGrant", request, until).await
    }

    pub(crate) async fn revoke(&self, id: i64, until: Instant) -> Result<(), Failure> {
        let method = "/etcdserverpb.Lease/LeaseRevoke";
        let done: Result<Answer<LeaseRevokeResponse>, _> =
            self.call(method, LeaseRevokeRequest { id }, until).await;
        done.map(drop)
    }

    /// Renews a lease. The API is a stream. Each renewal uses a stream of its own, so that a
    /// stalled stream cannot delay the next renewal.
    pub(crate) async fn keep_alive(
        &self,
        id: i64,
        until: Instant,
    ) -> Result<Answer<LeaseKeepAliveResponse>, Failure> {
        self.call("/etcdserverpb.Lease/LeaseKeepAlive", LeaseKeepAliveRequest { id }, until).await
    }

    /// Watches keys from now on. Also returns the server.
    pub(crate) async fn watch(
        &self,
        span: &Span,
        until: Instant,
    ) -> Result<(usize, Streaming<WatchResponse>), Failure> {
        let create = WatchCreateRequest { key: span.start.clone(), range_end: span.end.clone() };
        let request = WatchRequest { request_union: Some(WatchUnion::Create(create)) };
        self.retry(until, |server| self.open_watch(server, request.clone()))
            .await
            .map(|answer| answer.message)
    }

    async fn open_watch(
        &self,
        server: usize,
        request: WatchRequest,
    ) -> Result<(usize, Streaming<WatchResponse>), Status> {
        // If our side of the stream ended, the watch would end.
        let says = tokio_stream::once(request).chain(tokio_stream::pending());
        let mut request = self.with_token(server, says).await?;
        // Asks a member without a leader to report it instead of being silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let mut grpc = self.grpc(server).await?;
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        let mut stream = grpc.streaming(request, path, codec).await?.into_inner();
        match stream.message().await? {
            Some(first) if first.created && !first.canceled => Ok((server, stream)),
            Some(first) => Err(Status::unavailable(first.cancel_reason)),
            None => Err(Status::unavailable("the watch ended at once")),
        }
    }

    /// Sends a request until it is answered, at most until `until`.
    async fn call<Q, R>(
        &self,
        method: &'static str,
        request: Q,
        until: Instant,
    ) -> Result<Answer<R>, Failure>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        self.retry(until, |server| self.once(server, method, request.clone())).await
    }

    /// Tries one server after the other.
    async fn retry<R, F>(
        &self,
        until: Instant,
        attempt: impl Fn(usize) -> F,
    ) -> Result<Answer<R>, Failure>
    where
        F: Future<Output = Result<R, Status>>,
    {
        let first_sent = Instant::now();
        let (mut attempts, mut logins) = (0_usize, 0);
        loop {
            let server = *self.current.borrow();
            let sent = Instant::now();
            let result = timeout(self.attempt, attempt(server)).await;
            attempts += 1;
            let reason = match result {
                Ok(Ok(message)) => {
                    return Ok(Answer { message, sent, first_sent, resent: attempts > 1 });
                }
                Ok(Err(status)) => match self.remedy(&status) {
                    Remedy::LogIn if logins < 3 => {
                        logins += 1;
                        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = None;
                        continue;
                    }
                    Remedy::LogIn | Remedy::None => {
                        return Err(Failure::refused(&self.place, &status, attempts > 1));
                    }
                    Remedy::AskElsewhere => {
                        self.give_up(server);
                        describe(&status)
                    }
                },
                Err(_) => {
                    self.give_up(server);
                    format!("no answer within {:?}", self.attempt)
                }
            };
            // All servers have failed: pause before the next round.
            let count = self.servers().len();
            let rest = if attempts.is_multiple_of(count) {
                Duration::from_millis(20 << (attempts / count).min(4))
            } else {
                Duration::ZERO
            };
            if Instant::now() + rest >= until {
                let reason = format!("{}: {reason}", self.server(server).host);
                return Err(Failure::Unreachable { place: self.place.clone(), reason });
            }
            tokio::time::sleep(rest).await;
        }
    }

    /// Switches to the next server, unless another request has done so. Drops the connection to
    /// this one.
    pub(crate) fn give_up(&self, server: usize) {
        let next = (server + 1) % self.servers().len();
        self.current.send_if_modified(|current| {
            let moved = *current == server && next != server;
            if moved {
                *current = next;
            }
            moved
        });
        let server = self.server(server);
        let Server { endpoint, channel, .. } = &*server;
        *channel.lock().unwrap_or_else(PoisonError::into_inner) = endpoint.connect_lazy();
    }

    async fn grpc(&self, server: usize) -> Result<Grpc<Channel>, Status> {
        let channel =
            self.server(server).channel.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut grpc = Grpc::new(channel).max_decoding_message_size(LARGEST);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        Ok(grpc)
    }

    async fn once<Q, R>(&self, server: usize, method: &'static str, message: Q) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let request = self.with_token(server, message).await?;
        self.plain(server, method, request).await
    }

    async fn plain<Q, R>(
        &self,
        server: usize,
        method: &'static str,
        request: Request<Q>,
    ) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let mut grpc = self.grpc(server).await?;
        let path = PathAndQuery::from_static(method);
        Ok(grpc.unary(request, path, ProstCodec::<Q, R>::default()).await?.into_inner())
    }

    /// Adds the token to a message. Asks for one if there is none.
    async fn with_token<M>(&self, server: usize, message: M) -> Result<Request<M>, Status> {
        let mut request = Request::new(message);
        let Some(Login { user, password }) = &self.login else { return Ok(request) };
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = if let Some(token) = known {
            token
        } else {
            let login = AuthenticateRequest { name: user.clone(), password: password.clone() };
            let method = "/etcdserverpb.Auth/Authenticate";
            let AuthenticateResponse { token } =
                self.plain(server, method, Request::new(login)).await?;
            let token: AsciiMetadataValue =
                token.parse().map_err(|_| Status::internal("the server's token is no text"))?;
            *self.token.lock().unwrap_or_else(PoisonError::into_inner) = Some(token.clone());
            token
        };
        request.metadata_mut().insert("token", token);
        Ok(request)
    }

    fn remedy(&self, status: &Status) -> Remedy {
        let message = status.message();
        match status.code() {
            Code::Unauthenticated if self.login.is_some() => Remedy::LogIn,
            Code::InvalidArgument if message.contains("auth store is old") => Remedy::LogIn,
            Code::ResourceExhausted if message.contains("space exceeded") => Remedy::None,
            Code::InvalidArgument
            | Code::NotFound
            | Code::AlreadyExists
            | Code::PermissionDenied
            | Code::FailedPrecondition
            | Code::OutOfRange
            | Code::Unimplemented
            | Code::Unauthenticated => Remedy::None,
            _ => Remedy::AskElsewhere,
        }
    }
}

/// The text of an error with all its causes. The message of tonic alone says little.
fn describe(status: &Status) -> String {
    let mut text = status.message().to_owned();
    let mut source = status.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            _ = write!(text, ": {more}");
        }
        source = error.source();
    }
    if text.is_empty() { status.code().to_string() } else { text }
}

/// The TLS configuration, if the settings name files.
fn tls(settings: &Settings) -> Result<Option<ClientTlsConfig>, OpenError> {
    let files = &settings.files;
    let read = |path: &std::path::PathBuf| {
        std::fs::read(path).map_err(|source| OpenError::File { path: path.clone(), source })
    };
    let Some(authority) = &files.authority else { return Ok(None) };
    let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(read(authority)?));
    if let (Some(certificate), Some(key)) = (&files.certificate, &files.key) {
        tls = tls.identity(Identity::from_pem(read(certificate)?, read(key)?));
    }
    Ok(Some(tls))
}
