//! The translator as a command: stdin in one format, stdout in another, losses on stderr.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use super::output;
use crate::formats::{Capabilities, Framing, RequestHead, ResponseOptions, UpstreamTarget};
use crate::model::{Action, ApiError, Format, Losses, TranslationState};
use crate::translate;

#[derive(Debug, Args)]
pub(super) struct TranslateOptions {
    /// The format of stdin
    #[arg(long, value_parser = parse_format)]
    from: Format,
    /// The format of stdout
    #[arg(long, value_parser = parse_format)]
    to: Format,
    #[arg(long, value_enum, default_value = "request")]
    kind: InputKind,
    /// Of a request: the upstream's model id; of a response: the client's [default: as in the input]
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Translate the request as one for a stream, where the body does not say so
    #[arg(long)]
    stream: bool,
    /// The status an error came with
    #[arg(long, value_name = "N", default_value_t = 500)]
    status: u16,
    /// The chat client asked for usage in its stream
    #[arg(long)]
    include_usage: bool,
    /// A capability of the upstream's model, as in the config
    #[arg(long = "set", value_name = "FLAG=VALUE")]
    flags: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum InputKind {
    Request,
    Response,
    Stream,
    Error,
}

fn parse_format(name: &str) -> Result<Format, String> {
    Format::from_name(name)
        .ok_or_else(|| "use chat, messages, native, responses or images".to_owned())
}

/// A refusal goes to stdout in the client's format, with exit code 1.
pub(super) fn run(options: &TranslateOptions) -> Result<ExitCode> {
    let mut input = Vec::new();
    std::io::stdin()
        .read_to_end(&mut input)
        .context("cannot read stdin")?;
    let mut losses = Losses::default();
    let (outcome, client) = match options.kind {
        InputKind::Request => (options.request(&input, &mut losses)?, options.from),
        InputKind::Response => {
            let asked = options.asked()?;
            let (from, to) = (options.from, options.to);
            let body = translate::response(from, to, &input, &asked, &mut losses);
            (body, options.to)
        }
        InputKind::Stream => {
            let asked = options.asked()?;
            let body = translate::stream(options.from, options.to, &input, &asked);
            (Ok(body), options.to)
        }
        InputKind::Error => {
            let (from, to) = (options.from, options.to);
            let (_, body) = translate::error(from, to, options.status, &input, "");
            (Ok(body), options.to)
        }
    };
    for lost in &losses.0 {
        let action = match lost.action {
            Action::Dropped => "dropped",
            Action::Approximated => "adjusted",
            Action::Added => "added",
        };
        let path = client.codec().path_of(&lost.location);
        output::note(&format!("{action} {path}"));
    }
    let (body, code) = match outcome {
        Ok(body) => (body, ExitCode::SUCCESS),
        Err(api_error) => (
            client.codec().encode_error(&api_error, "").1,
            ExitCode::FAILURE,
        ),
    };
    output::write(&body)?;
    Ok(code)
}

impl TranslateOptions {
    fn capabilities(&self) -> Result<Capabilities> {
        let mut capabilities = Capabilities::default();
        for flag in &self.flags {
            let (name, value) = flag.split_once('=').context("--set takes FLAG=VALUE")?;
            capabilities.set(name, value).map_err(anyhow::Error::msg)?;
        }
        Ok(capabilities)
    }

    fn request(&self, input: &[u8], losses: &mut Losses) -> Result<Result<Vec<u8>, ApiError>> {
        let capabilities = self.capabilities()?;
        let fields = match self.from.codec().decode_routing_fields(input) {
            Ok(fields) => fields,
            Err(api_error) => return Ok(Err(api_error)),
        };
        let named = fields.model.map(|model| model.name.into_owned());
        let model = self.model.clone().or(named).unwrap_or_default();
        let stream = self.stream || fields.stream;
        let head = RequestHead {
            path_model: (self.from == Format::Native).then_some(model.as_str()),
            stream,
            text_only: false,
            ..RequestHead::default()
        };
        let target = UpstreamTarget {
            model: &model,
            stream,
            max_output_tokens: None,
            capabilities: &capabilities,
            brand: "google",
            images_only: false,
        };
        let outgoing = translate::request(self.from, self.to, &head, input, &target, losses);
        Ok(outgoing.map(|outgoing| outgoing.body))
    }

    fn asked(&self) -> Result<ResponseOptions> {
        let think_tags = self.capabilities()?.chat_think_tags && self.from == Format::Chat;
        Ok(ResponseOptions {
            model: self.model.clone().unwrap_or_default(),
            stream: matches!(self.kind, InputKind::Stream),
            framing: Framing::Sse,
            include_usage: self.include_usage,
            request_id: "req_translate".to_owned(),
            created_at: jiff::Timestamp::now().as_second(),
            translation_state: TranslationState {
                think_tags,
                ..TranslationState::default()
            },
        })
    }
}
