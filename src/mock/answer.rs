//! The reply that a plan stands for, in no wire format's words.

use sha2::{Digest as _, Sha256};

use super::images;
use super::proofs;
use super::schema::example;
use super::script::{Answer, Ending, Plan, WantedCall};
use crate::model::{
    Arguments, Call, Choice, Finish, Format, Media, OutputFormat, Part, PartKind, Request,
    Response, Source, Text, Tool, ToolChoice, ToolKind, Usage,
};

/// Every reply is as old as every other, so that the same request gives the same bytes.
pub(super) const CREATED: i64 = 1_760_000_000;
const MOST_CHOICES: u32 = 8;
const THOUGHT: &str = "The user wants an answer, so I will think of one.";
const REFUSAL: &str = "I cannot help with that.";
const PROSE: [&str; 16] = [
    "the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "seven", "wise",
    "owls", "watch", "in", "silence",
];
const CITIES: [&str; 4] = ["Paris", "London", "Tokyo", "Lima"];

/// The SHA-256 of a request body, from which everything that looks random is made.
pub(super) struct Fingerprint {
    hex: String,
    bytes: usize,
}

impl Fingerprint {
    pub(super) fn of(body: &[u8]) -> Fingerprint {
        let digest = Sha256::digest(body);
        Fingerprint {
            hex: digest.iter().map(|byte| format!("{byte:02x}")).collect(),
            bytes: body.len(),
        }
    }

    pub(super) fn short(&self) -> &str {
        &self.hex[..12]
    }

    pub(super) fn told(&self) -> String {
        format!("{} bytes {}", self.hex, self.bytes)
    }

    pub(super) fn id(&self, format: Format) -> String {
        let prefix = match format {
            Format::Chat => "chatcmpl-mock-",
            Format::Messages => "msg_mock",
            Format::Native => "mock-",
            Format::Responses => "resp_mock",
            Format::Images => "img-mock-",
        };
        format!("{prefix}{}", self.short())
    }
}

/// What an answer is made from.
pub(super) struct Asking<'r> {
    pub format: Format,
    pub request: &'r Request<'r>,
    pub model: &'r str,
    pub key_hash: &'r Fingerprint,
    pub created: i64,
    /// How many of the format's own signatures came back.
    pub proofs: usize,
    /// The request as text, for answers that repeat it.
    pub echo: &'r dyn Fn() -> String,
}

pub(super) fn answer(asking: &Asking<'_>, plan: &Plan) -> Response<'static> {
    let parts = parts(asking, plan);
    let choices = asking.request.sampling.choices.unwrap_or(1);
    let choices = choices.clamp(1, MOST_CHOICES);
    let usage = plan
        .usage
        .unwrap_or_else(|| count(asking.request, &parts, choices));
    let choice = Choice {
        finish: finish(asking.request, plan, &parts),
        parts,
        citations: Vec::new(),
        logprobs: Vec::new(),
    };
    Response {
        id: asking.key_hash.id(asking.format).into(),
        model: asking.model.to_owned().into(),
        created: asking.created,
        choices: vec![choice; choices as usize],
        usage: Some(usage),
    }
}

fn parts(asking: &Asking<'_>, plan: &Plan) -> Vec<Part<'static>> {
    let mut kinds = Vec::new();
    if plan.ending == Ending::Refusal {
        kinds.push(PartKind::Refusal(REFUSAL.into()));
    } else {
        match &plan.answer {
            Answer::Text(text) => kinds.push(say(text.clone())),
            Answer::Long(words) => kinds.push(say(prose(*words))),
            Answer::Shaped => kinds.push(say(shaped(&asking.request.output.format))),
            Answer::Echo => kinds.push(say((asking.echo)())),
            Answer::Digest => kinds.push(say(asking.key_hash.told())),
            Answer::Image if plan.ending == Ending::Filtered => {}
            Answer::Image => {
                kinds.push(say("Here is a picture.".to_owned()));
                kinds.push(PartKind::Media(picture(plan)));
            }
            Answer::Calls(calls) => {
                if plan.proofs {
                    kinds.push(say(format!("proofs={}.", asking.proofs)));
                }
                let numbered = calls.iter().enumerate();
                kinds.extend(numbered.map(|(number, wanted)| call(asking, wanted, number)));
            }
        }
    }
    if plan.thinking {
        think(asking, &mut kinds);
    }
    kinds
        .into_iter()
        .map(|kind| Part { kind, at: None })
        .collect()
}

fn say(text: String) -> PartKind<'static> {
    PartKind::Text(text.into())
}

fn picture(plan: &Plan) -> Media<'static> {
    Media {
        mime: "image/png".into(),
        source: Source::Base64(images::picture(plan).into()),
        name: None,
        detail: None,
    }
}

fn prose(words: usize) -> String {
    let words: Vec<&str> = PROSE.into_iter().cycle().take(words).collect();
    words.join(" ")
}

fn shaped(shape: &OutputFormat<'_>) -> String {
    match shape {
        OutputFormat::Text | OutputFormat::Json => r#"{"answer":"example"}"#.to_owned(),
        OutputFormat::Schema { schema, .. } => example(schema).to_string(),
        OutputFormat::Enum(schema) => match example(schema) {
            serde_json::Value::String(word) => word,
            other => other.to_string(),
        },
    }
}

/// The format's own kind of proof goes where the format's own models put it.
fn think(asking: &Asking<'_>, kinds: &mut Vec<PartKind<'static>>) {
    let mark = asking.key_hash.short();
    let mut signature = proofs::of_thought(asking.format, mark, THOUGHT);
    let mut calls = kinds.iter_mut().filter_map(|kind| match kind {
        PartKind::Call(call) => Some(call),
        _ => None,
    });
    if let (Format::Native, Some(call)) = (asking.format, calls.next()) {
        call.signature = Some(proofs::of_call(mark, &call.name));
        signature = None;
    }
    let thought = PartKind::Reasoning {
        text: THOUGHT.into(),
        signature,
    };
    kinds.insert(0, thought);
}

fn call(asking: &Asking<'_>, wanted: &WantedCall, number: usize) -> PartKind<'static> {
    let name = wanted.name.as_deref();
    let tool = choose_tool(asking.request, name, number);
    let mark = asking.key_hash.short();
    let id = match asking.format {
        Format::Chat | Format::Responses => Some(format!("call_mock{mark}{number}")),
        Format::Messages => Some(format!("toolu_mock{mark}{number}")),
        // Native models do not number their calls.
        Format::Native | Format::Images => None,
    };
    let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
    let arguments = match (kind, tool.and_then(|tool| tool.schema.as_ref())) {
        _ if wanted.arguments.is_some() => wanted.arguments.clone().unwrap_or_default(),
        (ToolKind::Custom, _) => "example".to_owned(),
        (ToolKind::Function, Some(schema)) => example(schema).to_string(),
        (ToolKind::Function, None) if tool.is_some() => "{}".to_owned(),
        (ToolKind::Function, None) => {
            serde_json::json!({"city": CITIES[number % CITIES.len()]}).to_string()
        }
    };
    let name = tool.map_or_else(|| name.unwrap_or("get_weather"), |tool| &tool.name);
    PartKind::Call(Call {
        id: id.map(Text::from),
        name: name.to_owned().into(),
        arguments: Arguments::Text(arguments.into()),
        signature: None,
        kind,
    })
}

fn choose_tool<'r>(
    request: &'r Request<'r>,
    name: Option<&str>,
    number: usize,
) -> Option<&'r Tool<'r>> {
    let tools = &request.tools;
    let allowed: Vec<&str> = match (name, &request.tool_choice) {
        (Some(name), _) => vec![name],
        (None, Some(ToolChoice::One(name))) => vec![name],
        (None, Some(ToolChoice::Subset { names, .. })) => names.iter().map(AsRef::as_ref).collect(),
        (None, _) if tools.is_empty() => return None,
        (None, _) => return tools.get(number % tools.len()),
    };
    let name = *allowed.get(number % allowed.len().max(1))?;
    tools.iter().find(|tool| tool.name == name)
}

fn finish(request: &Request<'_>, plan: &Plan, parts: &[Part<'_>]) -> Finish<'static> {
    let called = |part: &Part<'_>| matches!(part.kind, PartKind::Call(_));
    match plan.ending {
        Ending::Length => Finish::Length,
        Ending::Refusal => Finish::Refused,
        Ending::Filtered => Finish::Filtered(None),
        Ending::StopSequence => {
            let word = request.sampling.stop.first();
            let word = word.map_or_else(|| "END".to_owned(), |word| word.clone().into_owned());
            Finish::StopSequence(Some(word.into()))
        }
        Ending::Natural if parts.iter().any(called) => Finish::Tools,
        Ending::Natural => Finish::Stop,
    }
}

/// One word is one token.
fn count(request: &Request<'_>, parts: &[Part<'_>], choices: u32) -> Usage {
    let thought = |part: &&Part<'_>| matches!(part.kind, PartKind::Reasoning { .. });
    let thinking: u64 = parts.iter().filter(thought).map(words_of_part).sum();
    let all: u64 = parts.iter().map(words_of_part).sum();
    Usage {
        input: words_of_request(request),
        cached: 0,
        cache_written: 0,
        output: all * u64::from(choices),
        thinking: thinking * u64::from(choices),
        ..Usage::default()
    }
}

pub(super) fn words_of_request(request: &Request<'_>) -> u64 {
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    parts.map(words_of_part).sum()
}

fn words_of_part(part: &Part<'_>) -> u64 {
    match &part.kind {
        PartKind::Text(text) | PartKind::Refusal(text) | PartKind::Reasoning { text, .. } => {
            words(text)
        }
        PartKind::Call(call) => 1 + words(&call.arguments.to_text()),
        PartKind::Result(result) => result.parts.iter().map(words_of_part).sum(),
        PartKind::Media(_) => 1,
    }
}

/// Counts the beginnings of words, byte by byte: prompts may be many megabytes.
fn words(text: &str) -> u64 {
    let mut before = true;
    let mut count = 0;
    for byte in text.bytes() {
        let blank = byte.is_ascii_whitespace();
        count += u64::from(before && !blank);
        before = blank;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Issuer, Json, Role, Turn};

    fn request() -> Request<'static> {
        let schema = r#"{"type":"object","properties":{"city":{"type":"string"}}}"#;
        let schema: Json<'static> = serde_json::from_str(schema).unwrap();
        let tool = |name: &'static str, schema| Tool {
            name: name.into(),
            description: None,
            schema,
            strict: None,
            kind: ToolKind::Function,
            namespace: None,
            at: 0,
        };
        let part = Part {
            kind: PartKind::Text("three short words".into()),
            at: None,
        };
        Request {
            turns: vec![Turn {
                role: Role::User,
                parts: vec![part],
                at: Some(0),
            }],
            tools: vec![tool("find", Some(schema)), tool("stop", None)],
            ..Request::default()
        }
    }

    fn reply(format: Format, request: &Request<'_>, words: &str) -> Response<'static> {
        let plan = Plan::for_prompt(words, "demo").unwrap();
        let asking = Asking {
            format,
            request,
            model: "demo",
            key_hash: &Fingerprint::of(b"body"),
            created: CREATED,
            proofs: 0,
            echo: &|| "echoed".to_owned(),
        };
        answer(&asking, &plan)
    }

    fn calls(response: &Response<'_>) -> Vec<(String, String)> {
        let parts = response.choices[0].parts.iter();
        parts
            .filter_map(|part| match &part.kind {
                PartKind::Call(call) => {
                    Some((call.name.to_string(), call.arguments.to_text().into_owned()))
                }
                _ => None,
            })
            .collect()
    }

    fn pair(name: &str, arguments: &str) -> (String, String) {
        (name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn a_text_is_counted_in_words() {
        let response = reply(Format::Chat, &request(), "hello");
        assert_eq!(response.id, "chatcmpl-mock-230d8358dc8e");
        assert_eq!(response.created, 1_760_000_000);
        assert_eq!(
            response.choices[0].parts[0].kind,
            say("You said: hello".into())
        );
        assert_eq!(response.choices[0].finish, Finish::Stop);
        let usage = response.usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.thinking), (3, 3, 0));
    }

    #[test]
    fn calls_take_the_declared_tools_in_turn() {
        let two = reply(Format::Chat, &request(), "mock:parallel");
        let city = r#"{"city":"example"}"#;
        assert_eq!(calls(&two), [pair("find", city), pair("stop", "{}")]);
        assert_eq!(two.choices[0].finish, Finish::Tools);
        let named = reply(Format::Chat, &request(), "mock:tool=stop");
        assert_eq!(calls(&named), [pair("stop", "{}")]);
        let none = reply(Format::Chat, &Request::default(), "mock:tool");
        assert_eq!(calls(&none), [pair("get_weather", r#"{"city":"Paris"}"#)]);
    }

    #[test]
    fn calls_are_given_the_arguments_of_their_words() {
        let words = r#"mock:tool=stop mock:arguments={"at": "noon"} mock:tool=find mock:tool"#;
        let three = reply(Format::Messages, &request(), words);
        let city = r#"{"city":"example"}"#;
        assert_eq!(
            calls(&three),
            [
                pair("stop", r#"{"at": "noon"}"#),
                pair("find", city),
                pair("find", city)
            ]
        );
    }

    #[test]
    fn a_forced_tool_is_the_one_that_is_called() {
        let mut request = request();
        request.tool_choice = Some(ToolChoice::One("stop".into()));
        let forced = reply(Format::Chat, &request, "mock:tool");
        assert_eq!(calls(&forced), [pair("stop", "{}")]);
    }

    #[test]
    fn thoughts_carry_the_proof_of_the_answering_format() {
        let signature = |format| match &reply(format, &request(), "mock:thinking hi").choices[0]
            .parts[0]
            .kind
        {
            PartKind::Reasoning { signature, .. } => {
                signature.as_ref().map(|signature| signature.issuer)
            }
            other => panic!("a thought comes first, not {other:?}"),
        };
        assert_eq!(signature(Format::Chat), None);
        assert_eq!(signature(Format::Messages), Some(Issuer::Thinking));
        assert_eq!(signature(Format::Native), Some(Issuer::Native));
        assert_eq!(signature(Format::Responses), Some(Issuer::Responses));
        let native = reply(Format::Native, &request(), "mock:thinking mock:tool");
        let kinds = native.choices[0].parts.iter().map(|part| &part.kind);
        let [
            PartKind::Reasoning {
                signature: None, ..
            },
            PartKind::Call(call),
        ] = kinds.collect::<Vec<_>>()[..]
        else {
            panic!("a thought without a proof, then the call that carries it");
        };
        assert!(call.signature.is_some() && call.id.is_none());
        let usage = native.usage.unwrap();
        assert!(usage.thinking > 0 && usage.output > usage.thinking);
    }

    #[test]
    fn endings_and_choices_are_as_asked() {
        let finish = |words| {
            reply(Format::Chat, &request(), words).choices[0]
                .finish
                .clone()
        };
        assert_eq!(finish("mock:length"), Finish::Length);
        assert_eq!(finish("mock:filtered"), Finish::Filtered(None));
        assert_eq!(
            finish("mock:stop_sequence"),
            Finish::StopSequence(Some("END".into()))
        );
        let refused = reply(Format::Chat, &request(), "mock:refusal");
        assert_eq!(refused.choices[0].finish, Finish::Refused);
        assert_eq!(
            refused.choices[0].parts[0].kind,
            PartKind::Refusal(REFUSAL.into())
        );
        let mut three = request();
        three.sampling.choices = Some(3);
        let three = reply(Format::Chat, &three, "hi");
        assert_eq!(three.choices.len(), 3);
        assert_eq!(three.usage.unwrap().output, 9);
    }
}
