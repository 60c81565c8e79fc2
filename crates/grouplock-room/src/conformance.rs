//! What every kind of rooms has to pass.
