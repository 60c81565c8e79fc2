//! Gives the crate the version of its compiler, which the pages show with the figures.

use std::env;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let version = env::var_os("RUSTC")
        .and_then(|rustc| Command::new(rustc).arg("--version").output().ok())
        .and_then(|output| String::from_utf8(output.stdout).ok());
    // A missing version does not fail the build.
    let version = version.as_deref().map_or("unknown", str::trim);
    println!("cargo::rustc-env=GROUPLOCK_BENCH_RUSTC={version}");
}
