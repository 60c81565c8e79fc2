//! Everything that needs no sockets: the protocol in a few steps by hand and in a simulated
//! cluster, and the parts of a member one by one.

mod admission;
mod again;
mod cluster;
mod codec;
mod config;
mod coterie;
mod deaths;
mod frames;
mod leases;
mod metrics;
mod name;
mod opening;
mod rank;
mod reconnect;
mod simulated;
mod storage;
mod votes;
