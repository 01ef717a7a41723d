//! The config that is in force, which the console shows and never changes.

use crate::console::actor::ConsoleCall;
use crate::console::refusal::Refusal;
use crate::console::views::LoadedConfigView;

/// The config without its secrets, with what is seldom intended in it and why a later one was refused.
pub async fn get_config(call: &ConsoleCall) -> Result<LoadedConfigView, Refusal> {
    call.check_admin()?;
    let runtime = call.console.runtime.as_ref().ok_or(Refusal::NotFound)?;
    Ok(LoadedConfigView::new(
        &runtime.snapshot(),
        &runtime.refused(),
    ))
}
