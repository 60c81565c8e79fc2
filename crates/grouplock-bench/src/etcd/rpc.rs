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

/// A lock of etcd, and the lease for it.
#[derive(Debug)]
pub(super) struct RpcLock {
    runtime: Runtime,
    client: Grpc<Channel>,
    name: Vec<u8>,
    lease: i64,
    key: Vec<u8>,
}

impl RpcLock {
    /// Connects. The lease lasts longer than any measurement, so nothing has to keep it alive.
    pub(super) fn new(endpoint: &str, name: &str) -> Outcome<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.cannot("start a runtime")?;
        let endpoint = Endpoint::from_shared(format!("http://{endpoint}"))?.tcp_nodelay(true);
        let client = Grpc::new(runtime.block_on(endpoint.connect()).cannot("connect to etcd")?);
        let name = name.as_bytes().to_vec();
        let mut lock = RpcLock { runtime, client, name, lease: 0, key: Vec::new() };
        let request = LeaseGrantRequest { ttl: 3600 };
        let grant: LeaseGrantResponse = lock.call("/etcdserverpb.Lease/LeaseGrant", request)?;
        lock.lease = grant.id;
        Ok(lock)
    }

    pub(super) fn lock(&mut self) -> Outcome<()> {
        let request = LockRequest { name: self.name.clone(), lease: self.lease };
        let LockResponse { key } = self.call("/v3lockpb.Lock/Lock", request)?;
        self.key = key;
        Ok(())
    }

    pub(super) fn unlock(&mut self) -> Outcome<()> {
        let request = UnlockRequest { key: std::mem::take(&mut self.key) };
        let UnlockResponse {} = self.call("/v3lockpb.Lock/Unlock", request)?;
        Ok(())
    }

    fn call<Q, A>(&mut self, path: &'static str, request: Q) -> Outcome<A>
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
