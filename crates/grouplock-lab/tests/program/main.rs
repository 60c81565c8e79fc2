//! The program as its users call it.

mod check;
mod export;
mod pages;
mod report;
mod rmr;
mod weak;

use std::process::{Command, Output};

fn lab(arguments: &[&str]) -> Output {
    let mut program = Command::new(env!("CARGO_BIN_EXE_grouplock-lab"));
    program.args(arguments).output().expect("the program starts")
}
