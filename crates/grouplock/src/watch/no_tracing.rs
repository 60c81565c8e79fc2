//! Stands for `crate::long_waits` when nobody traces.

use std::time::Instant;

use super::{Crowd, Request};

pub(super) struct Wait;

impl Wait {
    #[inline]
    pub(super) fn begin(_request: Request) -> Self {
        Wait
    }

    #[inline]
    pub(super) fn next_look(&self) -> Option<Instant> {
        None
    }

    #[inline]
    pub(super) fn look(&mut self, _crowd: impl FnOnce() -> Crowd) {}

    #[inline]
    pub(super) fn turned_strict(&mut self) {}

    #[inline]
    pub(super) fn end(self, _inside: bool) {}
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
