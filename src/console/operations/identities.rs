//! The identity providers there are, and the identities of a person.

use crate::console::actor::ConsoleCall;
use crate::console::identity::IdentityProvider;
use crate::console::refusal::Refusal;
use crate::console::views::{IdentityView, ProviderView};

/// The providers that everybody may sign in at.
pub fn list_providers(call: &ConsoleCall) -> Vec<ProviderView> {
    call.console.identity.iter().map(view).collect()
}

fn view(provider: &IdentityProvider) -> ProviderView {
    ProviderView {
        name: provider.settings.name.clone(),
        label: provider.settings.label.clone(),
    }
}

/// The providers that one is connected with.
pub async fn own_providers(call: &ConsoleCall) -> Result<Vec<ProviderView>, Refusal> {
    let person = &call.signed_in()?.person.id;
    let identities = call.console.store.identities(person).await?;
    let is_own = |provider: &&IdentityProvider| {
        let mut known = identities.iter();
        known.any(|identity| identity.issuer == provider.settings.issuer)
    };
    let own = call.console.identity.iter().filter(is_own);
    let providers = own.map(view).collect();
    Ok(providers)
}

/// One's own identities.
pub async fn list_identities(call: &ConsoleCall) -> Result<Vec<IdentityView>, Refusal> {
    let person = &call.signed_in()?.person.id;
    let identities = call.console.store.identities(person).await?;
    let label = |issuer: &str| {
        let mut providers = call.console.identity.iter();
        let known = providers.find(|provider| provider.settings.issuer == issuer);
        known
            .map_or(issuer, |known| &known.settings.label)
            .to_owned()
    };
    let views = identities.into_iter();
    Ok(views
        .map(|identity| IdentityView::new(label(&identity.issuer), identity))
        .collect())
}

/// Disconnects one of one's own identities, unless it is the only way to sign in.
pub async fn unlink(call: &ConsoleCall, id: &str) -> Result<(), Refusal> {
    let person = &call.signed_in()?.person;
    call.check_stepped_up()?;
    let store = &call.console.store;
    let entry = call.audit("identity.unlink", &person.handle, String::new());
    match store.unlink_identity(&person.id, id, &entry).await? {
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}
