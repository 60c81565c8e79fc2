//! The commands about rooms, as users call them: with real processes.

mod abilities;
mod acquire;
mod demo;
mod descriptor;
mod errors;
mod events;
mod generated;
mod killed;
mod nested;
mod place;
mod recipes;
mod run;
mod several;
mod shown;
mod signals;
mod storm;
mod terminal;
mod whose;
