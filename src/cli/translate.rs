//! The translator as a command: stdin in one format, stdout in another, losses on stderr.

use std::io::Read as _;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, ValueEnum};

use super::output;
use crate::formats::Capabilities;
use crate::model::{Format, Losses};
use crate::translate::{BodyKind, StandaloneTranslation};

/// Ids of responses are made of it.
const REQUEST_ID: &str = "req_translate";

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
    let capabilities = options.capabilities()?;
    let translation = options.translation(&capabilities);
    let client = translation.client();
    let mut losses = Losses::default();
    let outcome = translation.translate(&input, &mut losses);
    for lost in &losses.0 {
        let action = lost.action.word();
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

    fn translation<'a>(&'a self, capabilities: &'a Capabilities) -> StandaloneTranslation<'a> {
        StandaloneTranslation {
            from: self.from,
            to: self.to,
            kind: match self.kind {
                InputKind::Request => BodyKind::Request,
                InputKind::Response => BodyKind::Response,
                InputKind::Stream => BodyKind::Stream,
                InputKind::Error => BodyKind::Error {
                    status: self.status,
                },
            },
            model: self.model.as_deref(),
            stream: self.stream,
            include_usage: self.include_usage,
            max_output_tokens: None,
            capabilities,
            request_id: match self.kind {
                InputKind::Error => "",
                InputKind::Request | InputKind::Response | InputKind::Stream => REQUEST_ID,
            },
            created_at: jiff::Timestamp::now().as_second(),
        }
    }
}
