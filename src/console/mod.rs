//! The console: web pages and an API for people who own keys, and for those who run the gateway.
//!
//! An operation checks its actor itself; the API and the pages only turn requests into inputs and views into bytes.

mod actor;
mod alert_failure;
mod alerts;
mod api;
mod assets;
mod blocking_work;
mod caller;
mod explorer;
mod fidelity;
mod gateway_client;
mod identity;
mod language;
mod mail;
mod openapi;
pub mod operations;
mod pages;
mod passwords;
mod refusal;
mod router;
mod security;
mod sessions;
mod state;
mod texts;
mod tokens;
mod totp;
mod views;
mod webhook;

pub use actor::{Actor, ConsoleCall, SignedIn, Via};
pub use alerts::watch_alerts;
pub use gateway_client::GatewayAccess;
pub use refusal::{InputProblem, Refusal};
pub use router::router;
pub use state::Console;
pub use views::{AccountView, CreatedPerson, LinkView, Moment, PersonView};
