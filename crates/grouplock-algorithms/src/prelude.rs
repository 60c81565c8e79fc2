//! The names that every algorithm's file needs: the traits it implements and the words of its
//! claims.

pub(crate) use crate::claims::{
    Bound, Claim, Claims, Entering, Exit, Growth, Kind, Limit, Primitive, Text,
};
pub(crate) use crate::memory::Value as _;
pub(crate) use crate::raw::{RawGroup, RawMutex};
pub(crate) use crate::{CapacityError, Session};

/// The file of the caller, for [`Claims::text`]. The argument is the name of that file.
macro_rules! text {
    ($name:literal) => {
        Text::new(file!(), include_str!($name))
    };
}
pub(crate) use text;
