//! Targets for fuzzing, in `tests`: `cargo test -p grouplock-fuzz` for a moment, and
//! `GROUPLOCK_FUZZ_MS=60000 cargo test -p grouplock-fuzz` for a minute each.
