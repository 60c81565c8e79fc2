//! What a report says, and what its page does in a browser.

mod browser;
mod careless;
mod dossier;
mod names;
mod page;
mod pages;
mod plot;
mod table;
