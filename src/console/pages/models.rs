//! The catalog for people: a card for each model.

use askama::Template;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::Response;

use super::usage::link;
use super::visit::{MODELS_SECTION, Page, Visit, render};
use crate::console::explorer::format_title;
use crate::console::operations::catalog::{self, ModelsInput};
use crate::console::texts::fill;
use crate::console::views::{ClientLossesView, ModelView, ModelsView};
use crate::formats::CAPABILITY_FLAGS;
use crate::model::Format;

#[derive(Template)]
#[template(path = "models.html")]
struct ModelsPage {
    page: Page,
    input: ModelsInput,
    found: ModelsView,
}

impl ModelsPage {
    fn title(&self, format: &str) -> &'static str {
        Format::from_name(format).map_or("", format_title)
    }

    fn count(&self) -> String {
        let count = self.page.texts.count(self.found.total as u64);
        fill(self.page.texts.catalog.count, count)
    }

    fn tokens(&self, tokens: &Option<u64>) -> String {
        let texts = &self.page.texts.catalog;
        let count = self.page.texts.count(tokens.unwrap_or_default());
        fill(texts.tokens, count)
    }

    /// Where a client's request to the model can be tried.
    fn explorer(&self, model: &ModelView, client: &ClientLossesView) -> String {
        let tokens = model.max_output_tokens.map(|tokens| tokens.to_string());
        let mut fields = vec![
            ("from", client.client),
            ("to", client.upstream),
            ("max_output_tokens", tokens.as_deref().unwrap_or_default()),
        ];
        let upstream = Format::from_name(client.upstream);
        let counts = |name: &str| {
            let mut flags = CAPABILITY_FLAGS.iter();
            let flag = flags.find(|flag| flag.name == name);
            flag.zip(upstream)
                .is_some_and(|(flag, upstream)| flag.concerns(upstream))
        };
        let set = model.capabilities.iter();
        let set = set.map(|(name, value)| (name.as_str(), value.as_str()));
        fields.extend(set.filter(|(name, _)| counts(name)));
        link("/translate", &fields)
    }

    fn page_link(&self, page: usize) -> String {
        let page = page.to_string();
        link("/models", &[("q", &self.input.q), ("page", &page)])
    }

    fn previous(&self) -> Option<String> {
        let page = self.found.page;
        (page > 1).then(|| self.page_link(page - 1))
    }

    fn next(&self) -> Option<String> {
        let page = self.found.page;
        (page < self.found.pages).then(|| self.page_link(page + 1))
    }

    /// The kinds of losses, with their paths.
    fn losses<'v>(
        &self,
        client: &'v ClientLossesView,
    ) -> Vec<(&'static str, &'static str, &'v [String])> {
        let texts = &self.page.texts.catalog;
        let kinds = [
            ("refused", texts.refused, client.refused.as_slice()),
            ("dropped", texts.dropped, client.dropped.as_slice()),
            ("adjusted", texts.adjusted, client.adjusted.as_slice()),
        ];
        let kinds = kinds.into_iter();
        kinds.filter(|(_, _, paths)| !paths.is_empty()).collect()
    }
}

pub async fn list(visit: Visit, Query(input): Query<ModelsInput>) -> Response {
    match catalog::list_models(&visit.call, &input).await {
        Ok(found) => {
            let template = ModelsPage {
                page: visit.page.in_section(MODELS_SECTION),
                input,
                found,
            };
            render(&template, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}
