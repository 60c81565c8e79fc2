//! Requests to whichever server answers.
//!
//! Every attempt has a time limit, and an attempt that fails is followed by one at the next server. All requests can be
//! repeated: the answer says whether one was. A server that has not answered gets a new connection when its
//! turn comes again, so that nothing waits on the old one.

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
    /// When the attempt began that was answered.
    pub(crate) sent: Instant,
    /// When the first attempt began.
    pub(crate) first_sent: Instant,
    /// Whether there were attempts before, which may still be on their way.
    pub(crate) resent: bool,
}

/// The servers of a place.
pub(crate) struct Rpc {
    place: String,
    /// Those that were named, then those that were learnt.
    nodes: RwLock<Vec<Arc<Node>>>,
    tls: Option<ClientTlsConfig>,
    /// Which of them to ask.
    current: watch::Sender<usize>,
    login: Option<Login>,
    token: Mutex<Option<AsciiMetadataValue>>,
    /// How long a server has to answer.
    pub(crate) attempt: Duration,
}

struct Node {
    host: String,
    endpoint: Endpoint,
    channel: Mutex<Channel>,
}

/// What to do about an error.
enum Remedy {
    /// It would be the same anywhere.
    None,
    /// The pass has run out.
    LogIn,
    /// Ask another server.
    AskElsewhere,
}

impl Node {
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
        Ok(Arc::new(Node { host: host.to_owned(), endpoint, channel }))
    }
}

impl Rpc {
    /// Within a runtime, as connections are made by tasks. They are made when they are needed.
    pub(crate) fn new(settings: &Settings) -> Result<Self, OpenError> {
        // A server that stalls must not take a lease with it.
        let attempt = (settings.ttl / 6).clamp(Duration::from_millis(300), Duration::from_secs(2));
        let tls = tls(settings)?;
        let nodes = settings.hosts.iter().map(|host| Node::new(host, tls.as_ref(), attempt));
        Ok(Rpc {
            place: settings.place.clone(),
            nodes: RwLock::new(nodes.collect::<Result<_, _>>()?),
            tls,
            current: watch::Sender::new(0),
            login: settings.login.clone(),
            token: Mutex::new(None),
            attempt,
        })
    }

    fn nodes(&self) -> Vec<Arc<Node>> {
        self.nodes.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn node(&self, node: usize) -> Arc<Node> {
        Arc::clone(&self.nodes.read().unwrap_or_else(PoisonError::into_inner)[node])
    }

    /// Asks the cluster for its members, and knows those it did not know. None is forgotten: one that is gone costs an
    /// attempt when its turn comes.
    pub(crate) async fn learn_members(&self, until: Instant) -> Result<(), Failure> {
        let method = "/etcdserverpb.Cluster/MemberList";
        let answer = self.call(method, MemberListRequest {}, until).await?;
        let MemberListResponse { members } = answer.message;
        let mut nodes = self.nodes.write().unwrap_or_else(PoisonError::into_inner);
        for url in members.iter().flat_map(|member| &member.client_urls) {
            let host = url.split_once("://").map_or(url.as_str(), |(_, host)| host);
            if !nodes.iter().any(|node| node.host == host)
                && let Ok(node) = Node::new(host, self.tls.as_ref(), self.attempt)
            {
                nodes.push(node);
            }
        }
        Ok(())
    }

    /// Completes when requests go to another server than this.
    pub(crate) async fn moved_from(&self, node: usize) {
        let mut current = self.current.subscribe();
        // It is not closed: we have it.
        _ = current.wait_for(|current| *current != node).await.map(drop);
    }

    /// Does a transaction.
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

    /// Lets a lease begin anew. The server's side of this is a stream; each time is one of its own, so that none
    /// can stall the next.
    pub(crate) async fn keep_alive(
        &self,
        id: i64,
        until: Instant,
    ) -> Result<Answer<LeaseKeepAliveResponse>, Failure> {
        self.call("/etcdserverpb.Lease/LeaseKeepAlive", LeaseKeepAliveRequest { id }, until).await
    }

    /// Watches keys from now on. Also tells which server is asked.
    pub(crate) async fn watch(
        &self,
        span: &Span,
        until: Instant,
    ) -> Result<(usize, Streaming<WatchResponse>), Failure> {
        let create = WatchCreateRequest { key: span.start.clone(), range_end: span.end.clone() };
        let request = WatchRequest { request_union: Some(WatchUnion::Create(create)) };
        self.retry(until, |node| self.open_watch(node, request.clone()))
            .await
            .map(|answer| answer.message)
    }

    async fn open_watch(
        &self,
        node: usize,
        request: WatchRequest,
    ) -> Result<(usize, Streaming<WatchResponse>), Status> {
        // The stream of what we say must not end, or the watch does.
        let says = tokio_stream::once(request).chain(tokio_stream::pending());
        let mut request = self.with_token(node, says).await?;
        // A member that has lost the others has to say so instead of being silent.
        request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
        let mut grpc = self.grpc(node).await?;
        let path = PathAndQuery::from_static("/etcdserverpb.Watch/Watch");
        let codec = ProstCodec::<WatchRequest, WatchResponse>::default();
        let mut stream = grpc.streaming(request, path, codec).await?.into_inner();
        match stream.message().await? {
            Some(first) if first.created && !first.canceled => Ok((node, stream)),
            Some(first) => Err(Status::unavailable(first.cancel_reason)),
            None => Err(Status::unavailable("the watch ended at once")),
        }
    }

    /// A request, until it is answered or `until`.
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
        self.retry(until, |node| self.once(node, method, request.clone())).await
    }

    /// Attempts at one server after the other.
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
            let node = *self.current.borrow();
            let sent = Instant::now();
            let result = timeout(self.attempt, attempt(node)).await;
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
                        self.give_up(node);
                        told(&status)
                    }
                },
                Err(_) => {
                    self.give_up(node);
                    format!("no answer within {:?}", self.attempt)
                }
            };
            // A round has failed: some rest before the next.
            let count = self.nodes().len();
            let rest = if attempts.is_multiple_of(count) {
                Duration::from_millis(20 << (attempts / count).min(4))
            } else {
                Duration::ZERO
            };
            if Instant::now() + rest >= until {
                let reason = format!("{}: {reason}", self.node(node).host);
                return Err(Failure::Unreachable { place: self.place.clone(), reason });
            }
            tokio::time::sleep(rest).await;
        }
    }

    /// Goes on to the next server, unless somebody has done so already, and drops the connection to this one.
    pub(crate) fn give_up(&self, node: usize) {
        let next = (node + 1) % self.nodes().len();
        self.current.send_if_modified(|current| {
            let moved = *current == node && next != node;
            if moved {
                *current = next;
            }
            moved
        });
        let node = self.node(node);
        let Node { endpoint, channel, .. } = &*node;
        *channel.lock().unwrap_or_else(PoisonError::into_inner) = endpoint.connect_lazy();
    }

    async fn grpc(&self, node: usize) -> Result<Grpc<Channel>, Status> {
        let channel =
            self.node(node).channel.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut grpc = Grpc::new(channel).max_decoding_message_size(LARGEST);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        Ok(grpc)
    }

    async fn once<Q, R>(&self, node: usize, method: &'static str, message: Q) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let request = self.with_token(node, message).await?;
        self.plain(node, method, request).await
    }

    async fn plain<Q, R>(
        &self,
        node: usize,
        method: &'static str,
        request: Request<Q>,
    ) -> Result<R, Status>
    where
        Q: Message + Clone + 'static,
        R: Message + Default + 'static,
    {
        let mut grpc = self.grpc(node).await?;
        let path = PathAndQuery::from_static(method);
        Ok(grpc.unary(request, path, ProstCodec::<Q, R>::default()).await?.into_inner())
    }

    /// A message with our pass, which is fetched if there is none.
    async fn with_token<M>(&self, node: usize, message: M) -> Result<Request<M>, Status> {
        let mut request = Request::new(message);
        let Some(Login { user, password }) = &self.login else { return Ok(request) };
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = if let Some(token) = known {
            token
        } else {
            let login = AuthenticateRequest { name: user.clone(), password: password.clone() };
            let method = "/etcdserverpb.Auth/Authenticate";
            let AuthenticateResponse { token } =
                self.plain(node, method, Request::new(login)).await?;
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

/// An error with everything that caused it: tonic's own words for what happens to a connection are few.
fn told(status: &Status) -> String {
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

/// How to speak TLS, if the settings name files for it.
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
