//! What goes wrong at every place of the way, in every pair of formats, and that nothing is left of it.

mod clients;
mod drips;
mod kill;
mod kinds;
mod matrix;
mod outbound;
mod puppet;
mod recorded;
mod resets;
