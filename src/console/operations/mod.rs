//! What can be done in the console. Every operation checks its actor itself; routes are not trusted to have done it.

pub mod accounts;
pub mod alerts;
mod attempt;
pub mod audit;
pub mod catalog;
pub mod config_keys;
pub mod fidelity;
pub mod home;
pub mod identities;
pub mod identity;
pub mod input;
pub mod inspect;
pub mod invitations;
pub mod keys;
pub mod loaded_config;
mod mail;
pub mod people;
pub mod play;
pub mod reset;
pub mod second_factor;
pub mod session;
pub mod sign_up;
mod snippets;
pub mod team_invitations;
pub mod teams;
pub mod translate;
pub mod upstreams;
pub mod usage;
pub mod verification;

#[cfg(test)]
mod tests;
