//! etcd's own lock, as fast as it can be: one connection, one long lease, one call to lock and one
//! to unlock, by a runtime on the caller's thread.

use http::uri::PathAndQuery;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use crate::report::{Cannot, Outcome};

// The part of etcd's rpc.proto and v3lock.proto that is needed here.

#[derive(Clone, PartialEq, Message)]
struct LeaseGrantRequest {
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
struct LeaseGrantResponse {
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct LockRequest {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

#[derive(Clone, PartialEq, Message)]
struct LockResponse {
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct UnlockRequest {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct UnlockResponse {}

/// A connection to etcd, and a lease. All requests are made on the calling thread.
#[derive(Debug)]
pub(super) struct Connection {
    runtime: Runtime,
    client: Grpc<Channel>,
    pub(super) lease: i64,
}

impl Connection {
    /// Connects. The lease lasts longer than any measurement, so nothing has to keep it alive.
    pub(super) fn new(endpoint: &str) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.cannot("start a runtime")?;
        let endpoint = Endpoint::from_shared(format!("http://{endpoint}"))?.tcp_nodelay(true);
        let client = Grpc::new(runtime.block_on(endpoint.connect()).cannot("connect to etcd")?);
        let mut connection = Connection { runtime, client, lease: 0 };
        let request = LeaseGrantRequest { ttl: 3600 };
        let grant: LeaseGrantResponse =
            connection.call("/etcdserverpb.Lease/LeaseGrant", request)?;
        connection.lease = grant.id;
        Ok(connection)
    }

    pub(super) fn call<Q, A>(&mut self, path: &'static str, request: Q) -> Outcome<A>
    where
        Q: Message + Send + Sync + 'static,
        A: Message + Default + Send + Sync + 'static,
    {
        let client = &mut self.client;
        self.runtime.block_on(async {
            client.ready().await?;
            let (path, codec) = (PathAndQuery::from_static(path), ProstCodec::<Q, A>::default());
            Ok(client.unary(Request::new(request), path, codec).await?.into_inner())
        })
    }
}

/// A lock of etcd.
#[derive(Debug)]
pub(super) struct RpcLock {
    connection: Connection,
    name: Vec<u8>,
    key: Vec<u8>,
}

impl RpcLock {
    pub(super) fn new(endpoint: &str, name: &str) -> Outcome<Self> {
        let connection = Connection::new(endpoint)?;
        Ok(RpcLock { connection, name: name.as_bytes().to_vec(), key: Vec::new() })
    }

    pub(super) fn lock(&mut self) -> Outcome<()> {
        let request = LockRequest { name: self.name.clone(), lease: self.connection.lease };
        let LockResponse { key } = self.connection.call("/v3lockpb.Lock/Lock", request)?;
        self.key = key;
        Ok(())
    }

    pub(super) fn unlock(&mut self) -> Outcome<()> {
        let request = UnlockRequest { key: std::mem::take(&mut self.key) };
        let UnlockResponse {} = self.connection.call("/v3lockpb.Lock/Unlock", request)?;
        Ok(())
    }
}
