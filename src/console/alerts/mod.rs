//! Alerts: watches what is spent of caps, and tells who wants to know by mail or webhook.

mod event;
mod failure;
mod sender;
mod watcher;
mod webhook;

pub use event::AlertEvent;
pub use failure::AlertFailure;
pub use sender::send_alert;
pub use watcher::watch_alerts;
pub use webhook::{WebhookClient, new_webhook_secret};
