//! Alerts: watches what is spent of caps, and tells who wants to know by mail or webhook.

mod event;
mod sender;
mod watcher;

pub use event::AlertEvent;
pub use sender::send_alert;
pub use watcher::watch_alerts;
