//! The published scorecards, for everybody.

use crate::console::actor::ConsoleCall;
use crate::console::fidelity::PUBLISHED;
use crate::console::refusal::Refusal;
use crate::console::views::FidelityView;

/// What gateways lose in translation: this one and others. It holds nothing of this installation, and is for everybody.
pub async fn get_fidelity(_call: &ConsoleCall) -> Result<&'static FidelityView, Refusal> {
    Ok(&PUBLISHED)
}
