//! Tests without sockets: the protocol step by step and in a simulated cluster, and the parts of a
//! member.

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
mod trust;
mod votes;
