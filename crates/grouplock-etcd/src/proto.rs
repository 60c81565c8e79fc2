//! The messages of etcd's API that rooms need, written by hand so that nothing has to be generated.
//!
//! Numbers and names are those of `rpc.proto` and `kv.proto` (packages `etcdserverpb` and `mvccpb`); fields that nobody
//! here reads or sets are left out, which the encoding allows. Only what etcd 3.4 has is used.

use prost::{Enumeration, Message, Oneof};

/// What every answer begins with.
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
    /// The lease it goes away with, or 0.
    #[prost(int64, tag = "6")]
    pub lease: i64,
}

/// Something that happened to a key.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Event {
    /// What.
    #[prost(enumeration = "EventType", tag = "1")]
    pub r#type: i32,
    /// The key as it is since; of a deletion only the key and the revision.
    #[prost(message, optional, tag = "2")]
    pub kv: Option<KeyValue>,
}

/// What can happen to a key.
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
    /// The first key that is not asked for any more; empty for a single key.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
    /// At most so many; 0 for all.
    #[prost(int64, tag = "3")]
    pub limit: i64,
    /// Without values.
    #[prost(bool, tag = "8")]
    pub keys_only: bool,
}

/// The keys.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct RangeResponse {
    /// Which revision this is.
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
    /// The lease it goes away with, or 0.
    #[prost(int64, tag = "3")]
    pub lease: i64,
}

/// It was put.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct PutResponse {
    /// Which revision this is.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Deletes keys.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteRangeRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The first key that is not deleted any more; empty for a single key.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
}

/// How many there were.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct DeleteRangeResponse {
    /// Which revision this is.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// How many there were.
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
    /// The revision at which the key was made; 0 if it is not there.
    Create = 1,
    /// The revision at which the key was changed last; 0 if it is not there.
    Mod = 2,
    /// Its lease; 0 if it has none or is not there.
    Lease = 4,
}

/// With what a comparison compares.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum TargetUnion {
    /// With a revision.
    #[prost(int64, tag = "5")]
    CreateRevision(i64),
    /// With a revision.
    #[prost(int64, tag = "6")]
    ModRevision(i64),
    /// With a lease.
    #[prost(int64, tag = "8")]
    Lease(i64),
}

/// A condition of a transaction. On a range it must hold for all keys in it.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct Compare {
    /// How.
    #[prost(enumeration = "CompareResult", tag = "1")]
    pub result: i32,
    /// What.
    #[prost(enumeration = "CompareTarget", tag = "2")]
    pub target: i32,
    /// The key, or the first one.
    #[prost(bytes = "vec", tag = "3")]
    pub key: Vec<u8>,
    /// With what.
    #[prost(oneof = "TargetUnion", tags = "5, 6, 8")]
    pub target_union: Option<TargetUnion>,
    /// The first key that is not meant any more; empty for a single key.
    #[prost(bytes = "vec", tag = "64")]
    pub range_end: Vec<u8>,
}

/// If all comparisons hold, then do the one, else do the other.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct TxnRequest {
    /// The conditions.
    #[prost(message, repeated, tag = "1")]
    pub compare: Vec<Compare>,
    /// What to do if all hold.
    #[prost(message, repeated, tag = "2")]
    pub success: Vec<RequestOp>,
    /// What to do if not.
    #[prost(message, repeated, tag = "3")]
    pub failure: Vec<RequestOp>,
}

/// A step of a transaction.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct RequestOp {
    /// Which.
    #[prost(oneof = "Request", tags = "1, 2, 3, 4")]
    pub request: Option<Request>,
}

/// What a step of a transaction can be.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum Request {
    /// Look.
    #[prost(message, tag = "1")]
    Range(RangeRequest),
    /// Put.
    #[prost(message, tag = "2")]
    Put(PutRequest),
    /// Delete.
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeRequest),
    /// Another transaction, at the same moment.
    #[prost(message, tag = "4")]
    Txn(TxnRequest),
}

/// What a transaction has done.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct TxnResponse {
    /// Which revision this is.
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
    /// Of which kind.
    #[prost(oneof = "Response", tags = "1, 2, 3, 4")]
    pub response: Option<Response>,
}

/// What an answer to a step can be.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum Response {
    /// Keys.
    #[prost(message, tag = "1")]
    Range(RangeResponse),
    /// It was put.
    #[prost(message, tag = "2")]
    Put(PutResponse),
    /// It was deleted.
    #[prost(message, tag = "3")]
    DeleteRange(DeleteRangeResponse),
    /// What the inner transaction has done.
    #[prost(message, tag = "4")]
    Txn(TxnResponse),
}

/// Something to say on a stream of watches.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchRequest {
    /// What.
    #[prost(oneof = "WatchUnion", tags = "1")]
    pub request_union: Option<WatchUnion>,
}

/// What can be said on a stream of watches.
#[derive(Clone, PartialEq, Eq, Hash, Oneof)]
pub enum WatchUnion {
    /// Watch something more.
    #[prost(message, tag = "1")]
    Create(WatchCreateRequest),
}

/// Asks for what happens to keys from now on.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchCreateRequest {
    /// The first key.
    #[prost(bytes = "vec", tag = "1")]
    pub key: Vec<u8>,
    /// The first key that is not meant any more.
    #[prost(bytes = "vec", tag = "2")]
    pub range_end: Vec<u8>,
}

/// What happened.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct WatchResponse {
    /// Which revision this is.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
    /// The watch is set: nothing from now on is missed.
    #[prost(bool, tag = "3")]
    pub created: bool,
    /// The watch is over.
    #[prost(bool, tag = "4")]
    pub canceled: bool,
    /// Why.
    #[prost(string, tag = "6")]
    pub cancel_reason: String,
    /// In the order in which they happened.
    #[prost(message, repeated, tag = "11")]
    pub events: Vec<Event>,
}

/// Asks for a lease.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseGrantRequest {
    /// In seconds.
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
    /// What the server made of the wish, in seconds.
    #[prost(int64, tag = "3")]
    pub ttl: i64,
    /// Why not.
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

/// It is over.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseRevokeResponse {
    /// Which revision this is.
    #[prost(message, optional, tag = "1")]
    pub header: Option<ResponseHeader>,
}

/// Lets a lease begin anew.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseKeepAliveRequest {
    /// Its number.
    #[prost(int64, tag = "1")]
    pub id: i64,
}

/// How long it lasts now.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct LeaseKeepAliveResponse {
    /// Its number.
    #[prost(int64, tag = "2")]
    pub id: i64,
    /// In seconds; 0 if there is no such lease.
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
    /// Where it says that clients reach it.
    #[prost(string, repeated, tag = "4")]
    pub client_urls: Vec<String>,
}

/// Who we are. It has no `Debug` that shows the password.
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

/// A pass for other requests.
#[derive(Clone, PartialEq, Eq, Hash, Message)]
pub struct AuthenticateResponse {
    /// The pass.
    #[prost(string, tag = "2")]
    pub token: String,
}
