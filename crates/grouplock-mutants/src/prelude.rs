//! The names that the texts use from their own crate.

pub(crate) use crate::claims::{
    Bound, Claim, Claims, Entering, Exit, Growth, Kind, Limit, Primitive, Text,
};
pub(crate) use crate::memory::Value as _;
pub(crate) use crate::raw::{RawGroup, RawMutex};
pub(crate) use crate::{CapacityError, Session};

macro_rules! text {
    ($name:literal) => {
        Text::new(file!(), include_str!($name))
    };
}
pub(crate) use text;
