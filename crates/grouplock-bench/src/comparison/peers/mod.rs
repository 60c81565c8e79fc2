//! The locks people use otherwise, as the harness sees them.

mod asynchronous;
mod by_hand;
mod parking;
mod sharded;
mod spinning;
mod standard;

pub use asynchronous::{AsyncLock, Tokio};
pub use by_hand::{ByHand, FairByHand};
pub use parking::{
    ParkingLotMutex, ParkingLotMutexFair, ParkingLotRwLock, ParkingLotRwLockFair, Usync,
};
pub use sharded::Sharded;
pub use spinning::{McsSpin, McsYield, SpinMutex, SpinRwLock};
pub use standard::{StdMutex, StdRwLock};
