//! Stands for `crate::deadlock` when nobody looks for deadlocks.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Instant;

use super::Request;
use crate::cores::Signal;

pub(crate) type GiveUp = Infallible;

#[inline]
pub(crate) fn asks() {}

#[inline]
pub(crate) fn gone(_lock: usize) {}

pub(crate) struct Held;

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

pub(crate) struct Away;

pub(super) struct Wait;

impl Wait {
    #[inline]
    pub(super) fn begin(
        _request: Request,
        _signal: &Arc<Signal>,
        _endless: bool,
        _bound: bool,
    ) -> Self {
        Wait
    }

    #[inline]
    pub(super) fn next_look(&self) -> Option<Instant> {
        None
    }

    #[inline]
    pub(super) fn end(self) {}

    #[inline]
    pub(super) fn look(&mut self) -> Option<GiveUp> {
        None
    }
}
