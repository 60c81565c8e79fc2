//! A target under libFuzzer, guided by what its bytes reach. Only `cargo xtask soak fuzz` builds it in a way that it can be used:
//! instrumented, with `--cfg fuzzing`.
//!
//! `GROUPLOCK_FUZZ_TARGET` names the target. The last argument is a directory: of bytes to begin with, and of those that were kept.

#![cfg_attr(fuzzing, no_main)]

#[cfg(fuzzing)]
mod guided {
    use std::sync::LazyLock;

    use grouplock_fuzz::{Target, targets};
    use libfuzzer_sys::fuzz_target;

    static TARGET: LazyLock<Box<dyn Target + Send + Sync>> = LazyLock::new(|| {
        let name = std::env::var("GROUPLOCK_FUZZ_TARGET").expect("the name of a target");
        let found = targets().into_iter().find(|(known, _)| *known == name);
        found.expect("a target of this name").1
    });

    fuzz_target!(
        init: {
            // libFuzzer reads the directory after this.
            let kept = std::env::args().next_back().expect("a directory");
            std::fs::write(std::path::Path::new(&kept).join("right"), TARGET.right()).expect("it can be written");
        },
        |bytes: &[u8]| TARGET.read(bytes)
    );
}

#[cfg(not(fuzzing))]
fn main() -> std::process::ExitCode {
    eprintln!("guided: built without libFuzzer; `cargo xtask soak fuzz` builds it with it");
    std::process::ExitCode::from(2)
}
