//! The translation explorer, for everybody: nothing of what is sent is stored or logged.

use std::collections::BTreeMap;
use std::time::Instant;

use crate::access::client_network;
use crate::console::actor::ConsoleCall;
use crate::console::explorer;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::TranslationView;
use crate::formats::Capabilities;
use crate::model::Format;
use crate::translate::{BodyKind, StandaloneTranslation};

/// The largest body that is translated.
pub const MAX_INPUT: usize = 256 << 10;

/// The largest translation that is sent: that of many small parts may be many times as long as they are.
const MAX_OUTPUT: usize = 8 * MAX_INPUT;

/// The longest settings together: every event of a stream has the model.
const MAX_SETTINGS: usize = 1024;

/// Ids of responses are made of it.
const REQUEST_ID: &str = "req_translate";

/// The model of requests whose format names it in the path.
const PATH_MODEL: &str = "acme-large";

/// A body to translate. What is empty is absent.
#[derive(Debug, Clone, Default)]
pub struct TranslationInput {
    /// `request`, `response` or `stream`.
    pub kind: String,
    pub from: String,
    pub to: String,
    pub input: String,
    pub model: String,
    /// The request is for a stream, where the path says so.
    pub stream: bool,
    /// Of the upstream's model.
    pub max_output_tokens: String,
    pub capabilities: BTreeMap<String, String>,
}

impl TranslationInput {
    pub fn kind(&self) -> Result<BodyKind, Refusal> {
        match self.kind.as_str() {
            "" | "request" => Ok(BodyKind::Request),
            "response" => Ok(BodyKind::Response),
            "stream" => Ok(BodyKind::Stream),
            _ => Err(InputProblem::BodyKind.into()),
        }
    }

    /// The formats of both sides.
    pub fn formats(&self) -> Result<(Format, Format), Refusal> {
        let format = |name: &str, field: &'static str| {
            Format::from_name(name).ok_or(InputProblem::Format(field))
        };
        Ok((format(&self.from, "from")?, format(&self.to, "to")?))
    }

    fn max_output_tokens(&self) -> Result<Option<u64>, Refusal> {
        let text = self.max_output_tokens.trim();
        let tokens = (!text.is_empty()).then(|| text.parse().ok().filter(|tokens| *tokens > 0));
        match tokens {
            Some(None) => Err(InputProblem::Count("max_output_tokens").into()),
            other => Ok(other.flatten()),
        }
    }

    fn settings_length(&self) -> usize {
        let values = self.capabilities.iter();
        let values = values.map(|(name, value)| name.len() + value.len());
        self.model.len() + values.sum::<usize>()
    }

    fn capabilities(&self) -> Result<Capabilities, Refusal> {
        let mut capabilities = Capabilities::default();
        for (name, value) in &self.capabilities {
            let set = capabilities.set(name, value.trim());
            set.map_err(InputProblem::Capability)?;
        }
        Ok(capabilities)
    }
}

/// Translates a body as the gateway does, and tells what becomes of it.
pub async fn translate(
    call: &ConsoleCall,
    input: TranslationInput,
) -> Result<TranslationView, Refusal> {
    let (kind, (from, to)) = (input.kind()?, input.formats()?);
    if input.input.len() > MAX_INPUT {
        return Err(InputProblem::InputTooLarge(MAX_INPUT >> 10).into());
    }
    if input.settings_length() > MAX_SETTINGS {
        return Err(InputProblem::SettingsTooLong(MAX_SETTINGS).into());
    }
    let capabilities = input.capabilities()?;
    let max_output_tokens = input.max_output_tokens()?;
    take_turn(call)?;
    let created_at = jiff::Timestamp::now().as_second();
    let work = move || {
        let named = Some(input.model.trim()).filter(|model| !model.is_empty());
        let is_in_path = from == Format::Native && kind == BodyKind::Request;
        let translation = StandaloneTranslation {
            from,
            to,
            kind,
            model: named.or_else(|| is_in_path.then_some(PATH_MODEL)),
            stream: input.stream,
            include_usage: true,
            max_output_tokens,
            capabilities: &capabilities,
            request_id: REQUEST_ID,
            created_at,
        };
        explorer::explore(&translation, &input.input, MAX_OUTPUT)
    };
    let view = call.console.explorations.run(work).await?;
    view.ok_or_else(|| InputProblem::OutputTooLarge(MAX_OUTPUT >> 10).into())
}

/// Counts a translation of a network, or refuses it for a while after many.
pub(super) fn take_turn(call: &ConsoleCall) -> Result<(), Refusal> {
    let network = call.remote.map(client_network);
    let taken = call
        .console
        .explorations_by_network
        .take(network, Instant::now());
    taken.map_err(Refusal::TooManyAttempts)
}
