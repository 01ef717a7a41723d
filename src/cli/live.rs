//! `check --live`: a table of what each upstream answered.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use comfy_table::{Table, presets};

use crate::config::Config;
use crate::credentials::{CredentialRefresher, SourceFetcher};
use crate::proxy::{ListFailure, LiveAnswer, ask_upstreams};
use crate::runtime::Runtime;

/// What the upstreams of a config answered.
pub(super) struct LiveCheck {
    pub(super) table: String,
    /// All were reached and took the credentials.
    pub(super) is_good: bool,
}

/// Asks each upstream of the config for its list of models.
pub(super) fn ask(config: Config) -> Result<LiveCheck> {
    let asked = asked_models(&config);
    let tokio = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let answers = tokio.block_on(async {
        let runtime = Arc::new(Runtime::new(config));
        let refresher = CredentialRefresher::new(runtime.clone(), SourceFetcher::default());
        tokio::select! {
            () = refresher.run() => Vec::new(),
            answers = ask_upstreams(&runtime) => answers,
        }
    });
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    table.set_header(["upstream", "asked", "answer"]);
    for answer in &answers {
        let none = BTreeSet::new();
        let models = asked.get(&*answer.upstream).unwrap_or(&none);
        table.add_row([
            &answer.upstream,
            answer.url.as_str(),
            &describe(answer, models),
        ]);
    }
    Ok(LiveCheck {
        table: table.trim_fmt(),
        is_good: answers.iter().all(is_good),
    })
}

/// The names that each upstream is asked for. A pattern stands for names that only clients know.
fn asked_models(config: &Config) -> BTreeMap<String, BTreeSet<String>> {
    let mut asked: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for model in &config.models {
        for target in &model.upstreams {
            let name = target.model.as_ref().unwrap_or(&model.id);
            if !name.contains('*') {
                let names = asked.entry(target.name.clone()).or_default();
                names.insert(name.clone());
            }
        }
    }
    asked
}

/// An upstream without a list of models was reached all the same.
fn is_good(answer: &LiveAnswer) -> bool {
    match &answer.models {
        Ok(_) => true,
        Err(ListFailure::Status(status)) => matches!(status, 404 | 405),
        Err(ListFailure::Failed(_)) => false,
    }
}

fn describe(answer: &LiveAnswer, models: &BTreeSet<String>) -> String {
    let listed = match &answer.models {
        Ok(listed) => listed,
        Err(ListFailure::Status(401 | 403)) => {
            return format!("{}: look at auth", status_of(answer));
        }
        Err(ListFailure::Status(404 | 405)) => {
            return format!(
                "{}: it was reached, and has no list of models there",
                status_of(answer)
            );
        }
        Err(ListFailure::Status(_)) => return status_of(answer),
        Err(ListFailure::Failed(reason)) => return reason.clone(),
    };
    let missing: Vec<&str> = models
        .iter()
        .filter(|name| !listed.contains(name))
        .map(String::as_str)
        .collect();
    let count = listed.len();
    match missing.is_empty() {
        true => format!("200: {count} models"),
        false => format!("200: {count} models, but not {}", missing.join(", ")),
    }
}

fn status_of(answer: &LiveAnswer) -> String {
    match &answer.models {
        Err(ListFailure::Status(status)) => status.to_string(),
        _ => String::new(),
    }
}
