//! Where the figures come from.

use std::{fs, thread};

/// The compiler this was built with.
pub const RUSTC: &str = env!("GROUPLOCK_BENCH_RUSTC");

/// The processor's name, as the operating system tells it.
pub fn processor() -> String {
    // Absent on some systems, and without a name on some processors: not worth failing for.
    let told = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut fields = told.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(field, _)| field.trim() == "model name")
        .map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// How many cores this program may use, if that can be told.
pub fn cores() -> Option<usize> {
    thread::available_parallelism().ok().map(usize::from)
}

/// The operating system and the version of its kernel.
pub fn system() -> String {
    // Absent on other systems than Linux.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()
}

/// How many threads of all programs wanted a core during the last minute, on average, if that can be told.
pub fn load() -> Option<f64> {
    let told = fs::read_to_string("/proc/loadavg").ok()?;
    told.split_whitespace().next()?.parse().ok()
}
