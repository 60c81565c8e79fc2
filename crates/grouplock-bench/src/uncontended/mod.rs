//! What an uncontended passage through each algorithm costs: the program `uncontended`.
//!
//! * [`subjects`]: everything that is measured, each with the same loop around one passage.
//! * [`rounds`]: the turns they take.
//! * [`page`]: the report.

pub mod page;
pub mod rounds;
pub mod subjects;
