//! The work for a body grows with its size, not with the square of it: every shape of body, in every pair of formats.

mod long_values;
mod lookups;
mod measure;
mod requests;
mod responses;
mod signatures;
mod signed_parts;
mod sizes;
mod streams;
mod think_tags;
