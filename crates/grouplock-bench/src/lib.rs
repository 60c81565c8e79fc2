//! What the locks of grouplock cost, next to others.
//!
//! Machines differ and are noisy, so no figure stands alone: it is a ratio to a peer that ran in the same
//! rounds, with its spread, and next to it stands a [count of instructions](instructions), which does
//! not depend on the clock.
//!
//! * [`uncontended`]: a passage through each algorithm of [`grouplock_algorithms`], alone.
//! * [`comparison`]: `GroupLock` and the locks people use otherwise, by threads that compete.
//! * [`etcd`]: rooms on etcd against etcd's own lock, on the same server. `src/bin/etcd.rs`.
//! * [`handover_by_hand`]: the peer that shows what the [`Memory`](grouplock_algorithms::memory::Memory)
//!   trait costs: the same algorithm written straight on atomics.
//! * [`rooms`]: the same between processes, against what the kernel and the C library offer. `src/bin/rooms.rs`.

pub mod allocations;
pub mod comparison;
pub mod etcd;
pub mod handover_by_hand;
pub mod instructions;
pub mod machine;
pub mod program;
pub mod rooms;
pub mod statistics;
pub mod uncontended;

// The tests look at what is counted.
#[cfg(test)]
#[global_allocator]
static ALLOCATOR: allocations::Counting = allocations::Counting;
