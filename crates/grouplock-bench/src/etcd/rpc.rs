//! etcd's own lock, as fast as it can be had: one connection, one lease that lasts, one call to lock and one to unlock, made by a
//! runtime on the caller's own thread.

use http::uri::PathAndQuery;
use prost::Message;
use tokio::runtime::Runtime;
use tonic::Request;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

use super::EtcdError;

// Of etcd's rpc.proto and v3lock.proto, what is needed; other fields of the answers are skipped.

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

/// A lock of etcd's, and the lease to take it with.
#[derive(Debug)]
pub struct RpcLock {
    runtime: Runtime,
    client: Grpc<Channel>,
    name: Vec<u8>,
    lease: i64,
    key: Vec<u8>,
}

impl RpcLock {
    /// Connects, and has a lease granted that lasts for longer than any measurement, so that it need not be kept alive.
    ///
    /// # Errors
    /// If etcd cannot be reached.
    pub fn new(endpoint: &str, name: &str) -> Result<Self, EtcdError> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(EtcdError::system("start a runtime"))?;
        let endpoint = Endpoint::from_shared(format!("http://{endpoint}"))?.tcp_nodelay(true);
        let mut client = Grpc::new(runtime.block_on(endpoint.connect())?);
        let request = LeaseGrantRequest { ttl: 3600 };
        let grant = PathAndQuery::from_static("/etcdserverpb.Lease/LeaseGrant");
        let LeaseGrantResponse { id: lease } =
            runtime.block_on(call(&mut client, grant, request))?;
        Ok(RpcLock { runtime, client, name: name.as_bytes().to_vec(), lease, key: Vec::new() })
    }

    /// Takes it.
    ///
    /// # Errors
    /// As etcd has reason to.
    pub fn lock(&mut self) -> Result<(), EtcdError> {
        let request = LockRequest { name: self.name.clone(), lease: self.lease };
        let path = PathAndQuery::from_static("/v3lockpb.Lock/Lock");
        let LockResponse { key } = self.runtime.block_on(call(&mut self.client, path, request))?;
        self.key = key;
        Ok(())
    }

    /// Gives it back.
    ///
    /// # Errors
    /// As etcd has reason to.
    pub fn unlock(&mut self) -> Result<(), EtcdError> {
        let request = UnlockRequest { key: std::mem::take(&mut self.key) };
        let path = PathAndQuery::from_static("/v3lockpb.Lock/Unlock");
        let UnlockResponse {} = self.runtime.block_on(call(&mut self.client, path, request))?;
        Ok(())
    }
}

async fn call<Q, A>(
    client: &mut Grpc<Channel>,
    path: PathAndQuery,
    request: Q,
) -> Result<A, EtcdError>
where
    Q: Message + Send + Sync + 'static,
    A: Message + Default + Send + Sync + 'static,
{
    client.ready().await?;
    let codec = ProstCodec::<Q, A>::default();
    Ok(client.unary(Request::new(request), path, codec).await?.into_inner())
}
