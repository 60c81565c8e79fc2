//! One page with everything, which needs nothing but itself.

use super::dossier::Dossier;

/// The page.
pub fn page(_: &Dossier) -> String {
    "<!doctype html>".to_owned()
}
