//! Settings that are accepted but that this version does not act on yet.

use super::settings::{Config, Limits};

/// One line per such setting: `keys.dev: spending_cap is not enforced by this version`.
pub fn notices(config: &Config) -> Vec<String> {
    let mut notices = Vec::new();
    let mut notice = |which: &str, setting: &str| {
        notices.push(format!("{which}: {setting} not enforced by this version"));
    };
    for key in &config.keys {
        let which = format!("keys.{}", key.name);
        if key.spending_cap.is_some() {
            notice(&which, "spending_cap is");
        }
        if key.limits != Limits::default() {
            notice(&which, "limits are");
        }
    }
    notices
}
