//! Monitors.
