//! The machine that the figures come from.

use std::{fs, thread};

/// The compiler of this program.
pub(crate) const RUSTC: &str = env!("GROUPLOCK_BENCH_RUSTC");

/// The name of the processor, from the operating system.
pub(crate) fn processor() -> String {
    // Some systems have no such file, and some processors have no name. The figures are still good.
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    fields
        .find(|(field, _)| field.trim() == "model name")
        .map_or_else(|| "unknown processor".to_owned(), |(_, name)| name.trim().to_owned())
}

/// How many cores this program may use, if the system knows.
pub(crate) fn cores() -> Option<usize> {
    thread::available_parallelism().ok().map(usize::from)
}

/// The machine and the compiler, in a line.
pub(crate) fn description() -> String {
    let cores = cores().map_or_else(|| "?".to_owned(), |cores| cores.to_string());
    format!("{}, {cores} cores, {}, {RUSTC}, release profile", processor(), system())
}

/// The operating system and the version of its kernel.
pub(crate) fn system() -> String {
    // Only Linux has this file.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()
}

/// How busy the cores were since the machine started, in ticks of the operating system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    /// Used by any program, or by another virtual machine.
    busy: u64,
    total: u64,
    /// Used by this program.
    own: u64,
}

impl Usage {
    /// Until now, if the system knows.
    pub(crate) fn now() -> Option<Self> {
        Self::read(
            &fs::read_to_string("/proc/stat").ok()?,
            &fs::read_to_string("/proc/self/stat").ok()?,
        )
    }

    /// Reads the files of Linux, see proc(5).
    fn read(machine: &str, own: &str) -> Option<Self> {
        let fields = machine.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // The first two fields contain the time of guests.
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let [_, _, _, idle, waiting, ..] = ticks[..] else { return None };
        let total: u64 = ticks.iter().sum();
        // The name of the program is in parentheses, and may contain any character.
        let (_, own) = own.rsplit_once(')')?;
        let mut own = own.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
        Some(Usage { busy: total - idle - waiting, total, own: own.next()? + own.next()? })
    }

    /// The share of the cores' time that other programs used since `before`. None if no time has
    /// passed.
    pub(crate) fn foreign_since(&self, before: &Usage) -> Option<f64> {
        let total = self.total.saturating_sub(before.total);
        let own = self.own.saturating_sub(before.own);
        let foreign = self.busy.saturating_sub(before.busy).saturating_sub(own);
        (total > 0).then(|| foreign as f64 / total as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usage_of_other_programs_is_separate() {
        let own =
            |user, system| format!("7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 {user} {system} 0 0 20");
        let before = Usage::read("cpu  100 0 50 800 50 0 0 0 9 9\ncpu0 1", &own(40, 10)).unwrap();
        assert_eq!(before, Usage { busy: 150, total: 1000, own: 50 });
        // 100 ticks more: 30 for us, 20 for others, 10 stolen, 40 idle.
        let after = Usage::read("cpu  140 0 60 840 50 0 0 10 9 9\n", &own(65, 15)).unwrap();
        assert_eq!(after.foreign_since(&before), Some(0.3));
        assert_eq!(before.foreign_since(&before), None);
        assert_eq!(Usage::read("intr 5", &own(1, 1)), None);
        assert_eq!(Usage::read("cpu  1 2 3 4 5 6 7 8", "7 (a"), None);
    }
}
