//! Rooms for scripts that cannot run one command: a descriptor keeps the holding ([`descriptor`]),
//! or a process in the background does ([`acquire`], [`release`]).

pub(crate) mod acquire;
mod caller;
pub(crate) mod descriptor;
pub(crate) mod release;
pub(crate) mod token;
