//! Other processes. They run the test `actor` of the module that starts them.

#![allow(unused_imports, reason = "no test file needs all of it")]

pub(crate) use grouplock_testing::actor::{Actor, listen, role, say};

/// Starts this program again in that role. `module` is `module_path!()`.
pub(crate) fn start(module: &str, role: &[&str], variables: &[(&str, &str)]) -> Actor {
    let (_, module) = module.split_once("::").expect("a module is in a crate");
    start_as(&format!("{module}::actor"), role, variables)
}

/// The same with a test of another name.
pub(crate) fn start_as(test: &str, role: &[&str], variables: &[(&str, &str)]) -> Actor {
    Actor::start_by(test, role, |program| _ = program.envs(variables.iter().copied()))
}
