//! Rooms on real etcd servers, which the tests start themselves: alone, as clusters, and while they
//! fail.
//!
//! In one program, so that what they all need is compiled and linked once.

mod access;
mod actor;
mod cluster;
mod conformance;
mod errors;
mod expired_waiter;
mod faults;
mod harness;
mod rooms;
mod server;
mod servers_fail;
