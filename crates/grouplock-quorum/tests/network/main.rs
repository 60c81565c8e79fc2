//! Members and clients that talk over sockets: processes on this machine, on ports that were free.
//!
//! In one program, so that what they all need is compiled and linked once.

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

/// Not a test: a member, if it was started as one.
#[test]
fn member() {
    cluster::play_member();
}
