//! What the locks of [`grouplock_algorithms`] cost.
//!
//! Machines differ and are noisy, so no figure stands alone: it is a ratio to a peer that ran in the same
//! [`rounds`], with its spread, and next to it stands a [count of instructions](instructions), which does
//! not depend on the clock.
//!
//! * [`subjects`]: everything that is measured, each with the same loop around one passage.
//! * [`handover_by_hand`]: the peer that shows what the [`Memory`](grouplock_algorithms::memory::Memory)
//!   trait costs: the same algorithm written straight on atomics.
//! * [`rooms`]: the same between processes, against what the kernel and the C library offer. `src/bin/rooms.rs`.
//! * [`page`]: the report. `src/bin/uncontended.rs` makes it.

pub mod arguments;
pub mod handover_by_hand;
pub mod instructions;
pub mod machine;
pub mod page;
pub mod rooms;
pub mod rounds;
pub mod subjects;
