//! Rooms on real etcd servers. The tests start the servers: alone, as clusters, and with faults.
//!
//! All tests are in one program, so that their common code is compiled and linked once.

mod access;
mod actor;
mod cluster;
mod conformance;
mod errors;
mod expired_waiter;
mod faults;
mod harness;
mod late;
mod rooms;
mod server;
mod servers_fail;
