//! The catalog for people: models, their prices, and what clients of each format lose on them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::Deserialize;

use super::translate::take_turn;
use crate::console::actor::ConsoleCall;
use crate::console::explorer::client_losses;
use crate::console::refusal::Refusal;
use crate::console::views::{ClientLossesView, ModelView, ModelsView, PriceView};
use crate::formats::{Capabilities, Operation};
use crate::model::Format;
use crate::runtime::{Model, Snapshot};

/// Models on a page.
const PAGE: usize = 24;

/// Which models are asked for. What is empty is absent.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(test, derive(utoipa::IntoParams))]
#[serde(default)]
#[cfg_attr(test, into_params(parameter_in = Query))]
pub struct ModelsInput {
    /// A part of the id, of the provider or of a feature.
    pub q: String,
    /// From 1 on.
    pub page: String,
}

/// Tells whether the catalog is for everybody.
pub fn is_public(call: &ConsoleCall) -> bool {
    let runtime = call.console.runtime.as_ref();
    runtime.is_some_and(|runtime| runtime.snapshot().server.public_catalog)
}

/// The models of the config that is in force, and those that upstreams list.
pub async fn list_models(call: &ConsoleCall, input: &ModelsInput) -> Result<ModelsView, Refusal> {
    if !is_public(call) {
        call.check_known()?;
    }
    take_turn(call)?;
    let found = call.console.runtime.as_ref().map(|runtime| {
        let wanted = input.q.trim().to_lowercase();
        let mut models = named_models(&runtime.snapshot());
        models.retain(|(name, model)| matches(name, model, &wanted));
        models
    });
    let found = found.unwrap_or_default();
    let (total, pages) = (found.len(), found.len().div_ceil(PAGE).max(1));
    let page = input.page.trim().parse().unwrap_or(1_usize).clamp(1, pages);
    let shown = found.into_iter().skip((page - 1) * PAGE).take(PAGE);
    let shown: Vec<(String, Arc<Model>)> = shown.collect();
    let work = move || {
        let mut tried = Vec::new();
        let views = shown.into_iter();
        views
            .map(|(name, model)| view(name, &model, &mut tried))
            .collect()
    };
    Ok(ModelsView {
        total,
        page,
        pages,
        models: call.console.explorations.run(work).await?,
    })
}

/// All names on offer. An id with a `*` is no name that a client could ask for.
pub(super) fn named_models(snapshot: &Snapshot) -> Vec<(String, Arc<Model>)> {
    let listed = snapshot.models.iter();
    let listed = listed.filter(|model| !model.settings.is_pattern());
    let listed = listed.flat_map(|model| {
        let names = model.settings.names();
        names.map(|name| (name.to_owned(), model.clone()))
    });
    let discovered = snapshot.discovered();
    let discovered = discovered.map(|(name, model)| (name, model.clone()));
    listed.chain(discovered).collect()
}

fn matches(name: &str, model: &Model, wanted: &str) -> bool {
    let settings = &model.settings;
    let words = [name, settings.provider.as_str(), &settings.model_type];
    let words = words
        .into_iter()
        .chain(settings.features.iter().map(String::as_str));
    let mut words = words.map(str::to_lowercase);
    wanted.is_empty() || words.any(|word| word.contains(wanted))
}

/// What was tried already: many models have the same capabilities.
type TriedLosses = Vec<(Capabilities, Option<u64>, ClientLossesView)>;

fn view(id: String, model: &Model, tried: &mut TriedLosses) -> ModelView {
    let settings = &model.settings;
    let mut formats = Vec::new();
    for target in &model.targets {
        let upstream = &target.upstream;
        let others = upstream.other_formats.iter().map(|other| other.format);
        for format in std::iter::once(upstream.format).chain(others) {
            if !formats.contains(&format.name()) {
                formats.push(format.name());
            }
        }
    }
    ModelView {
        id,
        provider: settings.provider.clone(),
        model_type: settings.model_type.clone(),
        features: settings.features.clone(),
        max_input_tokens: settings.max_input_tokens,
        max_output_tokens: settings.max_output_tokens,
        currency: settings.pricing.currency().to_owned(),
        prices: PriceView::list(&settings.pricing),
        formats,
        api_doc_url: settings.api_doc_url.clone(),
        capabilities: capabilities(model),
        clients: clients(model, tried),
    }
}

/// The capabilities that the config sets, for the first upstream.
fn capabilities(model: &Model) -> Vec<(String, String)> {
    let first = model.targets.first();
    let of_upstream = first.map(|target| target.upstream.capabilities.as_slice());
    let of_upstream = of_upstream.unwrap_or_default().iter();
    let all = of_upstream.chain(&model.settings.capabilities).cloned();
    let all: BTreeMap<String, String> = all.collect();
    all.into_iter().collect()
}

/// What clients lose: with each format that an upstream is asked in, in the order in which upstreams are.
fn clients(model: &Model, tried: &mut TriedLosses) -> Vec<ClientLossesView> {
    let settings = &model.settings;
    let clients: &[Format] = match settings.usual_operation() {
        Operation::Generate if settings.is_image_model() => &[Format::Images],
        Operation::Generate => &Format::ALL,
        _ => &[],
    };
    let mut found: Vec<ClientLossesView> = Vec::new();
    for client in clients {
        for target in &model.targets {
            let is_image = settings.is_image_model();
            let upstream = target
                .upstream
                .for_request(*client, Operation::Generate, is_image);
            let is_known = |seen: &ClientLossesView| {
                seen.client == client.name() && seen.upstream == upstream.format.name()
            };
            if found.iter().any(is_known) {
                continue;
            }
            let most = settings.max_output_tokens;
            let before = tried.iter().find(|(capabilities, tokens, losses)| {
                is_known(losses) && *tokens == most && *capabilities == *target.capabilities
            });
            if let Some((_, _, losses)) = before {
                found.push(losses.clone());
                continue;
            }
            let losses = client_losses(*client, upstream.format, &target.capabilities, most);
            tried.push(((*target.capabilities).clone(), most, losses.clone()));
            found.push(losses);
        }
    }
    found
}
