//! Members and clients that talk over sockets. They are processes on this machine, on free ports.
//!
//! All tests are in one program, so that their common code is compiled and linked once.

mod bad_input;
mod client;
mod cluster;
mod conformance;
mod enter;
mod faults;
mod long;
mod lost;
mod many;
mod page;
mod played;
mod storm;
mod tls;
mod upgrade;

/// Not a test: runs a member if this process was started as one.
#[test]
fn member() {
    cluster::play_member();
}
