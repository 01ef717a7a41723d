//! The published scorecards of gateways, for everybody.

use askama::Template;
use axum::http::StatusCode;
use axum::response::Response;

use super::visit::{FIDELITY_SECTION, Page, Visit, render};
use crate::console::explorer::format_title;
use crate::console::operations::fidelity;
use crate::console::texts::{fill_all, loss_in_chinese};
use crate::console::views::{FidelityLossView, FidelityPairView, FidelityView, GatewayScoreView};
use crate::model::Format;

/// From this share on a pair is good, if not whole.
const GOOD_FROM: usize = 90;

#[derive(Template)]
#[template(path = "fidelity.html")]
struct FidelityPage {
    page: Page,
    found: &'static FidelityView,
}

impl FidelityPage {
    fn title(&self, format: &str) -> &'static str {
        Format::from_name(format).map_or("", format_title)
    }

    /// The rows of the table: a client's format with its pairs.
    fn rows(
        &self,
        gateway: &'static GatewayScoreView,
    ) -> impl Iterator<Item = (&'static str, &'static [FidelityPairView])> {
        let rows = gateway.pairs.chunks(4);
        rows.map(|row| (row.first().map_or("", |pair| pair.client), row))
    }

    /// How the share looks; its number says the same.
    fn class(&self, pair: &FidelityPairView) -> &'static str {
        match pair.percent {
            _ if !pair.offered => "",
            100 => "good",
            GOOD_FROM.. => "warn",
            _ => "bad",
        }
    }

    /// The share with one decimal, as the page of the documentation has it.
    fn share(&self, gateway: &GatewayScoreView) -> String {
        let share = gateway.whole as f64 * 100.0 / gateway.runs.max(1) as f64;
        format!("{share:.1}")
    }

    /// Where a loss is seen.
    fn places(&self, loss: &FidelityLossView) -> String {
        let all = self.page.texts.fidelity.all;
        let is_all = |pair: &String| pair.matches(", ").count() == 3;
        if loss.pairs.len() == 4 && loss.pairs.iter().all(is_all) {
            return all.to_owned();
        }
        let places = loss.pairs.iter().map(|pair| match pair.split_once(" → ") {
            Some((client, _)) if is_all(pair) => format!("{client} → {all}"),
            _ => pair.clone(),
        });
        places.collect::<Vec<String>>().join("; ")
    }

    /// The runs that lose nothing, of all.
    fn counts(&self, gateway: &GatewayScoreView) -> String {
        let texts = self.page.texts;
        let whole = texts.count(gateway.whole as u64);
        let of = texts.fidelity.of;
        fill_all(of, &[&whole, &texts.count(gateway.runs as u64)])
    }

    /// The words of a loss, and whether they are code.
    fn words(&self, loss: &'static FidelityLossView) -> impl Iterator<Item = (bool, &'static str)> {
        let text = match self.page.texts.tag {
            "en" => None,
            _ => loss_in_chinese(&loss.what),
        };
        let words = text.unwrap_or(&loss.what).split('`').enumerate();
        words.map(|(at, words)| (at % 2 == 1, words))
    }
}

pub async fn show(visit: Visit) -> Response {
    match fidelity::get_fidelity(&visit.call).await {
        Ok(found) => {
            let page = visit.page.in_section(FIDELITY_SECTION);
            render(&FidelityPage { page, found }, StatusCode::OK)
        }
        Err(refusal) => visit.refuse(&refusal),
    }
}
