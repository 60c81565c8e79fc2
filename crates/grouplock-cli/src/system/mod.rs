//! What this program needs from the operating system.

pub(crate) mod descendants;
pub(crate) mod descriptors;
pub(crate) mod proc;
pub(crate) mod process;
pub(crate) mod signals;
pub(crate) mod startup;
