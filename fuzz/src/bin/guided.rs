//! Lets a target read files, for instance findings. `cargo xtask soak fuzz` builds it instrumented
//! and with `--cfg fuzzing`. Then it also searches with libFuzzer, guided by the code that the
//! bytes reach.

#![cfg_attr(fuzzing, no_main)]

use grouplock_fuzz::TARGETS;
#[cfg(not(fuzzing))]
use grouplock_fuzz::named;
use grouplock_fuzz::order::{Order, USAGE};

/// Parses the arguments. Runs commands that need no libFuzzer, and returns the others.
fn begin() -> Result<Order, u8> {
    match Order::understand(std::env::args().skip(1)) {
        Ok(Order::Names) => {
            for (name, _) in TARGETS {
                println!("target {name}");
            }
            Err(0)
        }
        Ok(order) => Ok(order),
        Err(mistake) => Err(refused(&format!("{mistake}\n{USAGE}"))),
    }
}

/// Prints why nothing is done. Returns the exit code.
fn refused(why: &str) -> u8 {
    eprintln!("guided: {why}");
    2
}

#[cfg(fuzzing)]
mod guided {
    use std::os::unix::process::CommandExt;
    use std::process::Command;
    use std::sync::LazyLock;

    use grouplock_fuzz::order::Order;
    use grouplock_fuzz::{AnyTarget, named};
    use libfuzzer_sys::fuzz_target;

    /// Set if the arguments are libFuzzer's own: it knows nothing of targets, and starts itself
    /// again for some of its options.
    const CHOSEN: &str = "GROUPLOCK_FUZZ_TARGET";

    static TARGET: LazyLock<AnyTarget> =
        LazyLock::new(|| named(&std::env::var(CHOSEN).unwrap_or_default()));

    /// Starts this program again with libFuzzer's arguments.
    fn again(order: Order) -> u8 {
        let (target, options, paths) = match order {
            Order::Names => return 0,
            Order::Read { target, files, options } => (target, options, files),
            Order::Search { target, directory, options } => {
                let seed = directory.join("right");
                if let Err(error) = std::fs::write(&seed, named(target).right()) {
                    return super::refused(&format!("`{}`: {error}", seed.display()));
                }
                (target, options, vec![directory])
            }
        };
        let error = std::env::current_exe().map_or_else(
            |error| error,
            |me| Command::new(me).args(options).args(paths).env(CHOSEN, target).exec(),
        );
        super::refused(&format!("this program cannot be started again: {error}"))
    }

    fuzz_target!(
        init: if std::env::var_os(CHOSEN).is_none() {
            // libFuzzer reads the arguments after this.
            std::process::exit(super::begin().map_or_else(|code| code, again).into())
        },
        |bytes: &[u8]| TARGET.read(bytes)
    );
}

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    begin().map_or_else(|code| code, read).into()
}

#[cfg(not(fuzzing))]
fn read(order: Order) -> u8 {
    let (target, files) = match order {
        Order::Read { target, files, options } if options.is_empty() => (named(target), files),
        _ => {
            return refused(
                "built without libFuzzer, it reads files and has no options; `cargo xtask soak fuzz` builds it with libFuzzer",
            );
        }
    };
    for file in files {
        let shown = file.display();
        match std::fs::read(&file) {
            Ok(bytes) => {
                println!("reading {shown}: {} bytes", bytes.len());
                target.read(&bytes);
            }
            Err(error) => return refused(&format!("`{shown}`: {error}")),
        }
    }
    println!("nothing was found");
    0
}
