//! The protocol without sockets: in a few steps by hand, and in a simulated cluster.

mod admission;
mod again;
mod reconnect;
mod simulated;
