//! What a client says and what an upstream answers, as a scenario file writes it: once, in no format's words.

use serde::Deserialize;
use serde_json::Value;

/// A request of a client.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SaidRequest {
    pub system: Option<String>,
    pub turns: Vec<SaidTurn>,
    pub tools: Vec<SaidTool>,
    pub choice: Option<SaidChoice>,
    /// `false`: one tool call at a time.
    pub parallel: Option<bool>,
    /// `null`: the client gives none. Most clients do, and a gateway that has no default shows it in one scenario.
    #[serde(default = "usual_limit")]
    pub limit: Option<u64>,
    pub temperature: Option<f64>,
    pub top_p: Option<f64>,
    pub top_k: Option<u64>,
    pub seed: Option<i64>,
    pub stop: Vec<String>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    pub output: Option<SaidOutput>,
    /// `low`, `medium` or `high`; reasoning is asked for in words too.
    pub effort: Option<String>,
    /// The id of the end user.
    pub user: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SaidTurn {
    User(Vec<SaidPart>),
    Assistant(Vec<SaidPart>),
    Results(Vec<SaidResult>),
    /// What the client received before, sent back as it came. The file has `true`; the driver puts the turn here.
    Answer(Value),
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum SaidPart {
    Text(String),
    /// A text that is sent this many times over.
    Repeat {
        text: String,
        times: usize,
    },
    Image(SaidMedia),
    ImageUrl(String),
    Document(SaidMedia),
    Audio(SaidMedia),
    Call(SaidCall),
}

/// Bytes in base64.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidMedia {
    /// The media type.
    pub media: String,
    #[serde(default)]
    pub name: Option<String>,
    pub data: String,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidCall {
    pub id: String,
    pub name: String,
    pub arguments: Value,
}

/// The result of the n-th call of the conversation, counted from 1.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidResult {
    pub call: usize,
    pub text: String,
    #[serde(default)]
    pub image: Option<SaidMedia>,
    #[serde(default)]
    pub error: bool,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidTool {
    pub name: String,
    pub description: String,
    pub schema: Value,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SaidChoice {
    None,
    Required,
    Tool(String),
}

/// Structured output.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidOutput {
    pub name: String,
    pub schema: Value,
}

/// An answer of an upstream.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SaidAnswer {
    pub thinking: Option<String>,
    /// The upstream signs its reasoning, and refuses a history in which another signature stands.
    pub signed: bool,
    pub text: Option<String>,
    /// How often the text comes.
    pub times: Option<usize>,
    pub refusal: Option<String>,
    pub citation: Option<SaidCitation>,
    pub calls: Vec<SaidCall>,
    /// `end`, `length`, `filtered`, `stop_sequence` or `tool_calls`. Where it is given, the scenario is about it; else the
    /// response ends as it must, and nobody looks.
    pub finish: Option<String>,
    /// Where it is given, the scenario is about it; else the upstream counts a few tokens, and nobody looks.
    pub usage: Option<SaidUsage>,
}

/// A source of a part of the text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SaidCitation {
    pub url: String,
    pub title: String,
    /// Stands in the text once.
    pub quote: String,
}

/// Tokens; `input` and `output` are everything, with what is counted beside it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SaidUsage {
    pub input: u64,
    pub output: u64,
    pub cached: u64,
    pub written: u64,
    pub reasoning: u64,
}

impl Default for SaidUsage {
    fn default() -> SaidUsage {
        SaidUsage {
            input: 21,
            output: 13,
            cached: 0,
            written: 0,
            reasoning: 0,
        }
    }
}

/// The limit of a client that has no reason for another.
const fn usual_limit() -> Option<u64> {
    Some(2048)
}

impl SaidPart {
    /// The text, where it is one.
    pub fn text(&self) -> Option<String> {
        match self {
            SaidPart::Text(text) => Some(text.clone()),
            SaidPart::Repeat { text, times } => Some(text.repeat(*times)),
            _ => None,
        }
    }
}

impl SaidMedia {
    pub fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media, self.data)
    }

    /// The name of a file, which two formats require.
    pub fn file_name(&self) -> &str {
        self.name.as_deref().unwrap_or("file.pdf")
    }
}

impl SaidAnswer {
    pub fn whole_text(&self) -> Option<String> {
        let times = self.times.unwrap_or(1);
        self.text.as_ref().map(|text| text.repeat(times))
    }

    pub fn finish(&self) -> &str {
        self.finish.as_deref().unwrap_or("end")
    }

    /// The tokens that the upstream counts.
    pub fn tokens(&self) -> SaidUsage {
        self.usage.unwrap_or_default()
    }
}

impl SaidRequest {
    /// Puts words before the first text of the user.
    pub fn mark(&mut self, words: &str) {
        for turn in &mut self.turns {
            let SaidTurn::User(parts) = turn else {
                continue;
            };
            for part in parts.iter_mut() {
                match part {
                    SaidPart::Text(text) => *text = format!("{words}{text}"),
                    SaidPart::Repeat { text, times } => {
                        let whole = text.repeat(*times);
                        *part = SaidPart::Text(format!("{words}{whole}"));
                    }
                    _ => continue,
                }
                return;
            }
            parts.insert(0, SaidPart::Text(words.to_owned()));
            return;
        }
    }

    /// The parts of all turns of the user.
    pub fn user_parts(&self) -> impl Iterator<Item = &SaidPart> {
        self.turns.iter().flat_map(SaidTurn::of_user)
    }

    /// The calls of the history.
    pub fn calls(&self) -> impl Iterator<Item = &SaidCall> {
        let parts = self.turns.iter().flat_map(SaidTurn::of_assistant);
        parts.filter_map(|part| match part {
            SaidPart::Call(call) => Some(call),
            _ => None,
        })
    }

    /// The results of all calls.
    pub fn results(&self) -> impl Iterator<Item = &SaidResult> {
        self.turns.iter().flat_map(SaidTurn::of_tools)
    }
}

impl SaidTurn {
    fn of_user(&self) -> &[SaidPart] {
        match self {
            SaidTurn::User(parts) => parts,
            _ => &[],
        }
    }

    fn of_assistant(&self) -> &[SaidPart] {
        match self {
            SaidTurn::Assistant(parts) => parts,
            _ => &[],
        }
    }

    fn of_tools(&self) -> &[SaidResult] {
        match self {
            SaidTurn::Results(results) => results,
            _ => &[],
        }
    }
}
