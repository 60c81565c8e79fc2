//! The messages of etcd's API that rooms need. They are written by hand, so that no code must be
//! generated.
//!
//! Numbers and names are those of `rpc.proto` and `kv.proto` (packages `etcdserverpb` and
//! `mvccpb`). Fields that this crate does not use are left out, which the encoding allows. All of
//! it exists in etcd 3.4.

use prost::{Enumeration, Message, Oneof};

/// The head of every answer.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ResponseHeader {
    /// Which cluster answered.
    #[prost(uint64, tag = "1")]
    pub cluster_id: u64,
    /// Which member answered.
    #[prost(uint64, tag = "2")]
    pub member_id: u64,
    /// The revision of the store when the answer was made.
    #[prost(int64, tag = "3")]
    pub revision: i64,
}

/// A key with its value.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct KeyValue {
    /// The key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The revision at which it was made.
    #[prost(int64, tag = "2")]
    pub create_revision: i64,
    /// The revision at which it was changed last.
    #[prost(int64, tag = "3")]
    pub mod_revision: i64,
    /// How often it was put since it was made.
    #[prost(int64, tag = "4")]
    pub version: i64,
    /// The value.
    #[prost(bytes = "vec", tag = "5")]
    pub value: Vec<u8>,
    /// Its lease, or 0.
    #[prost(int64, tag = "6")]
    pub lease: i64,
}

/// A change of a key.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Event {
    /// The kind of change.
    #[prost(enumeration = "EventType", tag = "1")]
    pub r#type: i32,
    /// The key after the change; after a deletion only the key and the revision.
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
}

/// The kinds of changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum EventType {
    /// It was made or changed.
    Put = 0,
    /// It was deleted, or its lease ran out.
    Delete = 1,
}

/// Asks for keys.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct RangeRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The first key after the range; empty for a single key.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// At most this many; 0 for all.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// Without values.
    #[prost(bool, tag = "8")]
    pub keys_only: bool,
}

/// The keys.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct RangeResponse {
    /// With the revision.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The keys.
    #[prost(message, repeated, tag = "2")]
    pub kvs: Vec<KeyValue>,
}

/// Puts a key.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct PutRequest {
    /// The key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The value.
    #[prost(bytes = "vec", tag = "2")]
    pub value: Vec<u8>,
    /// Its lease, or 0.
    #[prost(int64, tag = "3")]
    pub lease: i64,
}

/// The answer to a put.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct PutResponse {
    /// With the revision.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Deletes keys.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteRangeRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The first key after the range; empty for a single key.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
}

/// The answer to a deletion.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteRangeResponse {
    /// With the revision.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// How many keys were deleted.
    #[prost(int64, tag = "2")]
    pub deleted: i64,
}

/// How a comparison compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum CompareResult {
    /// Both are the same.
    Equal = 0,
}

/// What a comparison compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enumeration)]
#[repr(i32)]
pub enum CompareTarget {
    /// How often the key was put.
    Version = 0,
    /// The revision at which the key was made; 0 if it does not exist.
    Create = 1,
    /// The revision at which the key was last changed; 0 if it does not exist.
    Mod = 2,
    /// Its lease; 0 if it has none or does not exist.
    Lease = 4,
}

/// The value that a comparison compares with.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum TargetUnion {
    /// A revision.
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    /// A revision.
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    /// A lease.
    #[prost(int64, tag = "8")]
    Lease(i64),
}

/// A condition of a transaction. On a range, all keys must meet it.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Compare {
    /// The relation.
    #[prost(enumeration = "CompareResult", tag = "1")]
    pub result: i32,
    /// The property of the key.
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub target: i32,
    /// The key, or the first key.
    #[prost(bytes = "vec", tag = "3")]
    pub key: Vec<u8>,
    /// The value.
    #[prost(oneof = "TargetUnion", tags = "5, 6, 8")]
    pub target_union: Option<TargetUnion>,
    /// The first key after the range; empty for a single key.
    #[prost(bytes = "vec", tag = "64")]
    pub range_end: Vec<u8>,
}

/// If all conditions hold, the steps of `success`, else those of `failure`.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct TxnRequest {
    /// The conditions.
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    /// The steps if all conditions hold.
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    /// The steps if not.
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

/// A step of a transaction.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct RequestOp {
    /// The kind of step.
    #[prost(oneof = "Request", tags = "1, 2, 3, 4")]
    pub request: Option<Request>,
}

/// The kinds of steps.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum Request {
    /// Read.
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    /// Put.
    #[prost(message, tag = "2")]
    Put(PutRequest),
    /// Delete.
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
    /// A nested transaction.
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

/// The answer to a transaction.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct TxnResponse {
    /// With the revision.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// Whether all conditions held.
    #[prost(bool, tag = "2")]
    pub succeeded: bool,
    /// The answers to the steps that were done, in order.
    #[prost(message, repeated, tag = "3")]
    pub responses: Vec<ResponseOp>,
}

/// The answer to a step.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct ResponseOp {
    /// The kind of answer.
    #[prost(oneof = "Response", tags = "1, 2, 3, 4")]
    pub response: Option<Response>,
}

/// The kinds of answers to steps.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum Response {
    /// The keys that were read.
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    /// The answer to a put.
    #[prost(message, tag = "2")]
    Put(PutResponse),
    /// The answer to a deletion.
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
    /// The answer to a nested transaction.
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

/// A message on a stream of watches.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchRequest {
    /// The kind of message.
    #[prost(oneof = "WatchUnion", tags = "1")]
    pub request_union: Option<WatchUnion>,
}

/// The kinds of messages on a stream of watches.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum WatchUnion {
    /// Begin another watch.
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
}

/// Asks for the changes of keys from now on.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchCreateRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The first key after the range.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
}

/// Changes.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchResponse {
    /// With the revision.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The watch is set: no later change is missed.
    #[prost(bool, tag = "3")]
    pub created: bool,
    /// The watch is over.
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    /// Why the watch is over.
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    /// The changes, in order.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
}

/// Asks for a lease.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseGrantRequest {
    /// The duration, in seconds.
    #[prost(int64, tag = "1")]
    pub ttl: i64,
    /// Its number.
    #[prost(int64, tag = "2")]
    pub id: i64,
}

/// A lease.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseGrantResponse {
    /// Its number.
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// The duration that the server chose, in seconds.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
    /// Why there is no lease.
    #[prost(string, tag = "4")]
    pub error: String,
}

/// Ends a lease.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseRevokeRequest {
    /// Its number.
    #[prost(int64, tag = "1")]
    pub id: i64,
}

/// The answer to the end of a lease.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseRevokeResponse {
    /// With the revision.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Renews a lease.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseKeepAliveRequest {
    /// Its number.
    #[prost(int64, tag = "1")]
    pub id: i64,
}

/// The answer to a renewal.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseKeepAliveResponse {
    /// Its number.
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// The duration, in seconds; 0 if there is no such lease.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
}

/// Asks for the members of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberListRequest {}

/// The members of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct MemberListResponse {
    /// The members.
    #[prost(message, repeated, tag = "2")]
    pub members: Vec<Member>,
}

/// A member of the cluster.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Member {
    /// Its addresses for clients.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
}

/// A login. Its `Debug` hides the password.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
#[prost(skip_debug)]
pub struct AuthenticateRequest {
    /// The name.
    #[prost(string, tag = "1")]
    pub name: String,
    /// The password.
    #[prost(string, tag = "2")]
    pub password: String,
}

impl std::fmt::Debug for AuthenticateRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthenticateRequest").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The answer to a login.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct AuthenticateResponse {
    /// The token for other requests.
    #[prost(string, tag = "2")]
    pub token: String,
}
