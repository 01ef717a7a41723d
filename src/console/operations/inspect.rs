//! Inspections: started, looked at and ended by the owners of a key, and by nobody else.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::InspectorAccess;
use crate::console::actor::ConsoleCall;
use crate::console::refusal::Refusal;
use crate::console::views::{CaptureView, InspectionView};
use crate::runtime::{
    INSPECTED_REQUESTS, INSPECTION_TIME, InspectedKey, Inspection, InspectionScope, Inspector,
    Runtime,
};
use crate::store::{MembershipRole, PersonRole};

/// Starts an inspection of a key, or returns the one that is running.
pub async fn start_inspection(call: &ConsoleCall, key: &str) -> Result<InspectionView, Refusal> {
    let key = inspected_key(call, key).await?;
    let runtime = runtime(call)?;
    let running = of_owner(&runtime.state.inspector, &key);
    if let Some(running) = running.filter(|inspection| inspection.is_running()) {
        return Ok(view(call, &running));
    }
    let change = format!(
        "{INSPECTED_REQUESTS} requests within {} min",
        INSPECTION_TIME.as_secs() / 60
    );
    let entry = call.audit("inspection.start", &key.name, change);
    // What is not in the audit log does not happen.
    call.console.store.append_audit(&entry).await?;
    let switch = runtime.state.inspection_switch(&key.id);
    let inspection = runtime.state.inspector.start(key, switch);
    Ok(view(call, &inspection))
}

/// Ends the inspection of a key. What it has captured can be seen for a while.
pub async fn end_inspection(call: &ConsoleCall, key: &str) -> Result<(), Refusal> {
    let key = inspected_key(call, key).await?;
    let inspector = inspector(call)?;
    of_owner(inspector, &key).ok_or(Refusal::NotFound)?;
    let ended = inspector.end(&key.id).ok_or(Refusal::NotFound)?;
    let change = format!("{} requests captured", ended.captures().len());
    let entry = call.audit("inspection.end", &key.name, change);
    Ok(call.console.store.append_audit(&entry).await?)
}

/// The last inspection of a key, if it is not forgotten.
pub async fn find_inspection(
    call: &ConsoleCall,
    key: &str,
) -> Result<Option<InspectionView>, Refusal> {
    let key = inspected_key(call, key).await?;
    let inspection = of_owner(inspector(call)?, &key);
    Ok(inspection.map(|inspection| view(call, &inspection)))
}

pub async fn get_inspection(call: &ConsoleCall, id: &str) -> Result<InspectionView, Refusal> {
    let inspection = visible(call, id).await?;
    Ok(view(call, &inspection))
}

/// Tells of every change of an inspection.
pub async fn watch_inspection(
    call: &ConsoleCall,
    id: &str,
) -> Result<watch::Receiver<u64>, Refusal> {
    visible(call, id).await.map(|inspection| inspection.watch())
}

/// One request of an inspection, with all that was captured.
pub async fn get_capture(
    call: &ConsoleCall,
    id: &str,
    number: u32,
) -> Result<CaptureView, Refusal> {
    let capture = visible(call, id).await?.capture(number);
    let capture = capture.ok_or(Refusal::NotFound)?;
    Ok(CaptureView::new(&capture))
}

/// An inspection that the actor may see, which is asked anew each time: who has left the account sees nothing more.
async fn visible(call: &ConsoleCall, id: &str) -> Result<Arc<Inspection>, Refusal> {
    let person = &call.signed_in()?.person;
    let inspection = inspector(call)?.find(id).ok_or(Refusal::NotFound)?;
    if inspection.scope == InspectionScope::Play {
        // What one asked oneself is for nobody else.
        return match inspection.key.by == person.handle {
            true => Ok(inspection),
            false => Err(Refusal::NotFound),
        };
    }
    match inspected_key(call, &inspection.key.id).await {
        // What was captured belongs to who owned the key then.
        Ok(key) if key.account != inspection.key.account => Err(Refusal::NotFound),
        Ok(_) => Ok(inspection),
        // The id tells nothing to who may not see it.
        Err(Refusal::Forbidden) => Err(Refusal::NotFound),
        Err(refusal) => Err(refusal),
    }
}

/// The last inspection of a key by the account that has it now: what was captured belongs to who owned the key then.
fn of_owner(inspector: &Inspector, key: &InspectedKey) -> Option<Arc<Inspection>> {
    let last = inspector.of_key(&key.id);
    last.filter(|inspection| inspection.key.account == key.account)
}

fn view(call: &ConsoleCall, inspection: &Inspection) -> InspectionView {
    InspectionView::new(inspection, &call.console.gateway_name)
}

fn runtime(call: &ConsoleCall) -> Result<&Runtime, Refusal> {
    let runtime = call.console.runtime.as_deref();
    runtime.ok_or(Refusal::Unavailable)
}

fn inspector(call: &ConsoleCall) -> Result<&Inspector, Refusal> {
    Ok(&runtime(call)?.state.inspector)
}

/// A key that the actor may inspect: its prompts are for the owners of its account alone, not for administrators. The keys
/// of the config belong to who runs the gateway.
async fn inspected_key(call: &ConsoleCall, id: &str) -> Result<InspectedKey, Refusal> {
    let person = &call.signed_in()?.person;
    if call.console.settings.inspector == InspectorAccess::Off {
        return Err(Refusal::InspectorOff);
    }
    let by = person.handle.clone();
    if let Some(name) = config_key(call, id) {
        call.check_admin()?;
        return Ok(InspectedKey {
            id: id.to_owned(),
            name,
            account: String::new(),
            by,
        });
    }
    let store = &call.console.store;
    let key = store.key_by_id(id).await?;
    let key = key.filter(|key| key.revoked.is_none());
    let key = key.ok_or(Refusal::NotFound)?;
    match store.membership(&person.id, &key.account).await? {
        Some(MembershipRole::Owner) if person.role != PersonRole::Viewer => Ok(InspectedKey {
            id: key.id,
            name: key.settings.name,
            account: key.account,
            by,
        }),
        Some(_) => Err(Refusal::Forbidden),
        None if call.is_admin() => Err(Refusal::Forbidden),
        None => Err(Refusal::NotFound),
    }
}

/// The name of a key of the config.
fn config_key(call: &ConsoleCall, id: &str) -> Option<String> {
    let snapshot = call.console.runtime.as_ref()?.snapshot();
    let key = snapshot.keys.values().find(|key| &*key.id == id)?;
    Some(key.name.to_string())
}
