//! Stands for `crate::deadlock` and `crate::long_waits` when nobody looks on.
#![allow(dead_code, reason = "one of the two may look on")]

use std::convert::Infallible;
use std::sync::Arc;

use super::{Observer, Request};
use crate::cores::Signal;

pub(crate) type GiveUp = Infallible;

#[inline]
pub(crate) fn asks() {}

#[inline]
pub(crate) fn gone(_lock: usize) {}

pub(crate) struct Held;

pub(crate) struct Away;

impl Held {
    #[inline]
    pub(crate) fn new(_request: Request) -> Self {
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
    pub(crate) fn now(&mut self, _exclusive: bool) {}
}

pub(crate) type Wait = ();

impl Observer for () {
    #[inline]
    fn begin(_: Request, _: &Arc<Signal>, _endless: bool, _bound: bool) {}
}

#[derive(Debug)]
pub(crate) struct TaskWait;

impl TaskWait {
    #[inline]
    pub(crate) fn begin() -> Self {
        TaskWait
    }

    #[inline]
    pub(crate) fn end(&self, _request: Request, _inside: bool) {}
}
