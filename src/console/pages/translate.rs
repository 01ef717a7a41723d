//! The translation explorer: a form, and both sides of a translation with their marks.

use askama::Template;
use axum::extract::rejection::FormRejection;
use axum::extract::{Form, Query};
use axum::http::StatusCode;
use axum::response::Response;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use url::form_urlencoded;

use super::visit::{Page, TRANSLATE_SECTION, Visit, render, status_of};
use crate::console::explorer::{format_title, is_sample, sample};
use crate::console::operations::translate::{self, MAX_INPUT, TranslationInput};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::texts::fill;
use crate::console::views::{LossView, TranslationView};
use crate::formats::{CAPABILITY_FLAGS, CapabilityFlag};
use crate::model::Format;
use crate::translate::BodyKind;

/// The most that a link carries: many programs cut long addresses.
const MAX_LINKED: usize = 16 << 10;

/// The fields of a form or a query, in any order.
type Pairs = Vec<(String, String)>;

#[derive(Template)]
#[template(path = "translate.html")]
struct TranslatePage {
    page: Page,
    kind: BodyKind,
    from: Format,
    to: Format,
    input: TranslationInput,
    /// The link carries the input behind its `#`.
    is_linked: bool,
    result: Option<TranslationView>,
    /// `None`: the input is too large for one.
    link: Option<String>,
}

impl TranslatePage {
    fn formats(&self) -> Vec<(&'static str, &'static str)> {
        let formats = Format::EVERY.into_iter();
        formats
            .map(|format| (format.name(), format_title(format)))
            .collect()
    }

    fn kinds(&self) -> [(&'static str, &'static str); 3] {
        let texts = &self.page.texts.explorer;
        [
            ("request", texts.request),
            ("response", texts.response),
            ("stream", texts.stream),
        ]
    }

    /// The format of the upstream, whose model has the capabilities.
    fn upstream(&self) -> Format {
        match self.kind {
            BodyKind::Request => self.to,
            BodyKind::Response | BodyKind::Stream | BodyKind::Error { .. } => self.from,
        }
    }

    fn flags(&self) -> Vec<&'static CapabilityFlag> {
        let upstream = self.upstream();
        let flags = CAPABILITY_FLAGS.iter();
        flags.filter(|flag| flag.concerns(upstream)).collect()
    }

    fn flag_value(&self, flag: &CapabilityFlag) -> &str {
        let value = self.input.capabilities.get(flag.name);
        value.map_or("", String::as_str)
    }

    fn has_options(&self) -> bool {
        let input = &self.input;
        !input.model.is_empty()
            || input.stream
            || !input.max_output_tokens.is_empty()
            || !input.capabilities.is_empty()
    }

    fn before(&self) -> String {
        let texts = &self.page.texts.explorer;
        format!("{} · {}", texts.before, format_title(self.from))
    }

    fn after(&self, result: &TranslationView) -> String {
        let texts = &self.page.texts.explorer;
        match result.refused {
            Some(_) => texts.error_body.to_owned(),
            None => format!("{} · {}", texts.after, format_title(self.to)),
        }
    }

    fn refusal(&self, status: &u16) -> String {
        let texts = &self.page.texts.explorer;
        match self.kind {
            BodyKind::Request => fill(texts.refused, status),
            _ => fill(texts.refused_response, status),
        }
    }

    /// The decoders of other streams report nothing.
    fn is_silent_stream(&self) -> bool {
        self.kind == BodyKind::Stream && self.from != Format::Native
    }

    fn input_hint(&self) -> String {
        fill(self.page.texts.explorer.input_hint, MAX_INPUT >> 10)
    }

    /// Tells whether the link has the input behind its `#`.
    fn link_carries_input(&self) -> bool {
        let link = self.link.as_ref();
        link.is_some_and(|link| link.contains('#'))
    }

    fn link_too_long(&self) -> String {
        fill(self.page.texts.explorer.link_too_long, MAX_LINKED >> 10)
    }

    const fn max_input(&self) -> usize {
        MAX_INPUT
    }

    /// What the translation reports, by kind of loss.
    fn reports<'v>(&self, result: &'v TranslationView) -> Vec<LossReport<'v>> {
        let texts = &self.page.texts.explorer;
        let actions = [
            ("dropped", texts.dropped_hint),
            ("adjusted", texts.adjusted_hint),
            ("added", texts.added_hint),
        ];
        let reports = actions.map(|(action, hint)| LossReport {
            action,
            hint,
            losses: result.of_action(action),
        });
        let reports = reports.into_iter();
        reports.filter(|report| !report.losses.is_empty()).collect()
    }
}

/// The losses of one kind.
struct LossReport<'v> {
    action: &'static str,
    hint: &'static str,
    losses: Vec<&'v LossView>,
}

/// Shows an example, or what a link asks for.
pub async fn show(visit: Visit, Query(pairs): Query<Pairs>) -> Response {
    let is_linked = pairs.iter().any(|(name, _)| name == "linked");
    let mut input = input_of(pairs);
    let (kind, from, _) = match sides(&input) {
        Ok(sides) => sides,
        Err(refusal) => return visit.refuse(&refusal),
    };
    if !is_linked {
        input.input = sample(from, kind).to_owned();
    }
    respond(visit, input, is_linked).await
}

/// Translates what was pasted.
pub async fn submit(visit: Visit, form: Result<Form<Pairs>, FormRejection>) -> Response {
    let Ok(Form(pairs)) = form else {
        let refusal = Refusal::from(InputProblem::InputTooLarge(MAX_INPUT >> 10));
        return visit.refuse(&refusal);
    };
    let mut input = input_of(pairs);
    // Browsers end lines of forms with both.
    input.input = input.input.replace("\r\n", "\n");
    if let Ok((kind, from, _)) = sides(&input)
        && (input.input.trim().is_empty() || is_sample(&input.input))
    {
        // An example follows the format that was chosen.
        input.input = sample(from, kind).to_owned();
    }
    respond(visit, input, false).await
}

fn sides(input: &TranslationInput) -> Result<(BodyKind, Format, Format), Refusal> {
    let (from, to) = input.formats()?;
    Ok((input.kind()?, from, to))
}

async fn respond(visit: Visit, input: TranslationInput, is_linked: bool) -> Response {
    let (kind, from, to) = match sides(&input) {
        Ok(sides) => sides,
        Err(refusal) => return visit.refuse(&refusal),
    };
    let mut page = visit.page.in_section(TRANSLATE_SECTION);
    let result = match is_linked {
        true => Ok(None),
        false => translate::translate(&visit.call, input.clone())
            .await
            .map(Some),
    };
    let status = match &result {
        Ok(_) => StatusCode::OK,
        Err(refusal) => {
            page = page.with_problem(refusal);
            status_of(refusal)
        }
    };
    page.path = address(&input, false);
    let link = link(&input).map(|path| visit.call.console.url(&path));
    let template = TranslatePage {
        page,
        kind,
        from,
        to,
        input,
        is_linked,
        result: result.ok().flatten(),
        link,
    };
    render(&template, status)
}

/// What the fields ask for; the others are capabilities.
fn input_of(pairs: Pairs) -> TranslationInput {
    let mut input = TranslationInput {
        kind: "request".to_owned(),
        from: "chat".to_owned(),
        to: "messages".to_owned(),
        ..TranslationInput::default()
    };
    for (name, value) in pairs {
        match name.as_str() {
            "kind" => input.kind = value,
            "from" => input.from = value,
            "to" => input.to = value,
            "input" => input.input = value,
            "model" => value.trim().clone_into(&mut input.model),
            "stream" => input.stream = !value.is_empty(),
            "max_output_tokens" => value.trim().clone_into(&mut input.max_output_tokens),
            // Of the preferences, and of links.
            "linked" | "note" => {}
            _ if value.trim().is_empty() => {}
            _ => {
                input.capabilities.insert(name, value);
            }
        }
    }
    input
}

/// The path of the page with its settings, without the input.
fn address(input: &TranslationInput, is_linked: bool) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let settings = [
        ("kind", input.kind.as_str()),
        ("from", &input.from),
        ("to", &input.to),
        ("model", &input.model),
        ("stream", if input.stream { "true" } else { "" }),
        ("max_output_tokens", &input.max_output_tokens),
        ("linked", if is_linked { "1" } else { "" }),
    ];
    let capabilities = input.capabilities.iter();
    let capabilities = capabilities.map(|(name, value)| (name.as_str(), value.as_str()));
    for (name, value) in settings.into_iter().chain(capabilities) {
        if !value.is_empty() {
            query.append_pair(name, value);
        }
    }
    format!("/translate?{}", query.finish())
}

/// The path that shows the same again. An input stands behind the `#`, which browsers send to no server.
fn link(input: &TranslationInput) -> Option<String> {
    if is_sample(&input.input) {
        return Some(address(input, false));
    }
    if input.input.len() > MAX_LINKED {
        return None;
    }
    let carried = URL_SAFE_NO_PAD.encode(&input.input);
    Some(format!("{}#input={carried}", address(input, true)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(query: &str) -> Pairs {
        form_urlencoded::parse(query.as_bytes())
            .into_owned()
            .collect()
    }

    #[test]
    fn a_link_has_the_settings_in_its_query_and_the_input_behind_it() {
        let mut input = input_of(pairs(
            "kind=request&from=chat&to=native&native_thinking=budget&efforts=&stream=on&max_output_tokens=9",
        ));
        assert_eq!(input.capabilities.len(), 1);
        let settings =
            "/translate?kind=request&from=chat&to=native&stream=true&max_output_tokens=9";
        sample(Format::Chat, BodyKind::Request).clone_into(&mut input.input);
        let flag = "&native_thinking=budget";
        assert_eq!(link(&input), Some(format!("{settings}{flag}")));
        input.input = "{\"é\":1}".to_owned();
        let own = link(&input).expect("a link");
        assert_eq!(own, format!("{settings}&linked=1{flag}#input=eyLDqSI6MX0"));
        input.input = "x".repeat(MAX_LINKED + 1);
        assert_eq!(link(&input), None);
        let (path, _) = own.split_once('#').expect("a fragment");
        let again = input_of(pairs(path.split_once('?').expect("a query").1));
        assert_eq!(
            (again.kind, again.to),
            ("request".to_owned(), "native".to_owned())
        );
        assert_eq!(again.capabilities, input.capabilities);
    }
}
