//! What can be done in the console. Every operation checks its actor itself; routes are not trusted to have done it.

mod attempt;
pub mod catalog;
pub mod config_keys;
pub mod home;
pub mod identities;
pub mod identity;
pub mod input;
pub mod invitations;
pub mod keys;
mod mail;
pub mod people;
pub mod reset;
pub mod second_factor;
pub mod session;
pub mod sign_up;
mod snippets;
pub mod translate;
pub mod usage;
pub mod verification;

#[cfg(test)]
mod tests;
