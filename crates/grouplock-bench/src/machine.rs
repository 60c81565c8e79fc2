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

/// Where and with what a run was made, in a line.
pub fn told() -> String {
    let cores = cores().map_or_else(|| "?".to_owned(), |cores| cores.to_string());
    format!("{}, {cores} cores, {}, {RUSTC}, release profile", processor(), system())
}

/// The operating system and the version of its kernel.
pub fn system() -> String {
    // Absent on other systems than Linux.
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim().to_owned()
}

/// What the cores have done since the machine was started, in ticks of the operating system's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Usage {
    /// For anybody; or nothing because another virtual machine had the core.
    busy: u64,
    /// In all.
    total: u64,
    /// For this program.
    own: u64,
}

impl Usage {
    /// Until now, if that can be told.
    pub fn now() -> Option<Self> {
        Self::read(
            &fs::read_to_string("/proc/stat").ok()?,
            &fs::read_to_string("/proc/self/stat").ok()?,
        )
    }

    /// From the texts of Linux, see proc(5).
    fn read(machine: &str, own: &str) -> Option<Self> {
        let fields = machine.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
        // What guests use is contained in the first two.
        let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
        let [_, _, _, idle, waiting, ..] = ticks[..] else { return None };
        let total: u64 = ticks.iter().sum();
        // The program's name is in parentheses, and may contain anything.
        let (_, own) = own.rsplit_once(')')?;
        let mut own = own.split_whitespace().skip(11).map_while(|field| field.parse::<u64>().ok());
        Some(Usage { busy: total - idle - waiting, total, own: own.next()? + own.next()? })
    }

    /// The share of the cores' time that went to other programs since `before`. None if no time has passed.
    pub fn foreign_since(&self, before: &Usage) -> Option<f64> {
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
    fn what_others_use_is_told_apart_from_what_we_use() {
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
