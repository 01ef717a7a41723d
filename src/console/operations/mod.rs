//! What can be done in the console. Every operation checks its actor itself; routes are not trusted to have done it.

pub mod config_keys;
pub mod input;
pub mod invitations;
pub mod keys;
pub mod people;
pub mod session;

#[cfg(test)]
mod tests;
