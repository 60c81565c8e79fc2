//! Replaces `crate::deadlock` and `crate::long_waits` if their feature is off.
#![allow(dead_code, reason = "one of the two features may be on")]

use std::convert::Infallible;
use std::sync::Arc;

use super::{Observer, RequestInfo};
use crate::cores::Signal;

pub(crate) type PanicReason = Infallible;

#[inline]
pub(crate) fn about_to_wait() {}

#[inline]
pub(crate) fn gone(_lock: usize) {}

#[derive(Debug)]
pub(crate) struct Held;

pub(crate) struct Away;

impl Held {
    #[inline]
    pub(crate) fn new(_lock: usize, _exclusive: bool) -> Self {
        Held
    }

    #[inline]
    pub(crate) fn of_task(&mut self) {}

    #[inline]
    pub(crate) fn touch(&self) {}

    #[inline]
    pub(crate) fn leave(&mut self) {}

    #[inline]
    pub(crate) fn away(&mut self) -> Away {
        Away
    }

    #[inline]
    pub(crate) fn set_exclusive(&mut self, _exclusive: bool) {}
}

pub(crate) type Wait = ();

impl Observer for () {
    #[inline]
    fn begin(_: RequestInfo, _: &Arc<Signal>, _no_deadline: bool, _must_finish: bool) {}
}

#[derive(Debug)]
pub(crate) struct TaskWait;

impl TaskWait {
    #[inline]
    pub(crate) fn begin() -> Self {
        TaskWait
    }

    #[inline]
    pub(crate) fn end(&self, _request: RequestInfo, _inside: bool) {}
}
