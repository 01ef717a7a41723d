//! The keys of the config file, which the console shows and never changes.

use super::keys::usage;
use crate::console::actor::ConsoleCall;
use crate::console::refusal::Refusal;
use crate::console::views::ConfigKeyView;
use crate::runtime::config_key_id;

/// The keys of the config that is in force, in the order of the file.
pub async fn list_config_keys(call: &ConsoleCall) -> Result<Vec<ConfigKeyView>, Refusal> {
    call.check_admin()?;
    let Some(runtime) = &call.console.runtime else {
        return Ok(Vec::new());
    };
    let snapshot = runtime.snapshot();
    let mut views = Vec::with_capacity(snapshot.config_keys.len());
    for key in &snapshot.config_keys {
        let id = config_key_id(&key.sha256);
        let used = usage(call, &id).await?;
        views.push(ConfigKeyView::new(id, key, used));
    }
    Ok(views)
}
