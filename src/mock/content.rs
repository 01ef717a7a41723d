//! Makes the content of a planned response, independent of the format.

use super::body_hash::BodyHash;
use super::plan::{PlannedCall, PlannedContent, PlannedFinish, ResponsePlan};
use super::sample_image;
use super::schema_example::example;
use super::signatures;
use crate::model::{
    Arguments, Call, Choice, Finish, Format, Media, OutputFormat, Part, PartKind, Request,
    Response, Source, Text, Tool, ToolChoice, ToolKind, Usage,
};

const MAX_CHOICES: u32 = 8;
const REASONING: &str = "The user wants an answer, so I will think of one.";
const REFUSAL: &str = "I cannot help with that.";
const PROSE: [&str; 16] = [
    "the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "while", "seven", "wise",
    "owls", "watch", "in", "silence",
];
const CITIES: [&str; 4] = ["Paris", "London", "Tokyo", "Lima"];

/// What the content of a response depends on.
pub(super) struct ContentOptions<'r> {
    pub format: Format,
    pub request: &'r Request<'r>,
    pub model: &'r str,
    pub body_hash: &'r BodyHash,
    pub created: i64,
    /// How many of the format's own signatures the client sent back.
    pub signatures: usize,
    /// Returns the request as text, for responses that repeat it.
    pub echo: &'r dyn Fn() -> String,
}

/// Makes the response of a plan.
pub(super) fn make_response(
    options: &ContentOptions<'_>,
    plan: &ResponsePlan,
) -> Response<'static> {
    let parts = parts(options, plan);
    let choices = options.request.sampling.choices.unwrap_or(1);
    let choices = choices.clamp(1, MAX_CHOICES);
    let usage = plan
        .usage
        .unwrap_or_else(|| count(options.request, &parts, choices));
    let choice = Choice {
        finish: finish(options.request, plan, &parts),
        parts,
        citations: Vec::new(),
        logprobs: Vec::new(),
    };
    Response {
        id: options.body_hash.id(options.format).into(),
        model: options.model.to_owned().into(),
        created: options.created,
        choices: vec![choice; choices as usize],
        usage: Some(usage),
    }
}

fn parts(options: &ContentOptions<'_>, plan: &ResponsePlan) -> Vec<Part<'static>> {
    let mut kinds = Vec::new();
    if plan.finish == PlannedFinish::Refusal {
        kinds.push(PartKind::Refusal(REFUSAL.into()));
    } else {
        match &plan.content {
            PlannedContent::Text(text) => kinds.push(text_part(text.clone())),
            PlannedContent::Long(words) => kinds.push(text_part(prose(*words))),
            PlannedContent::OutputFormat => {
                kinds.push(text_part(in_output_format(&options.request.output.format)))
            }
            PlannedContent::Echo => kinds.push(text_part((options.echo)())),
            PlannedContent::BodyHash => kinds.push(text_part(options.body_hash.to_text())),
            PlannedContent::Image if plan.finish == PlannedFinish::Filtered => {}
            PlannedContent::Image => {
                kinds.push(text_part("Here is a picture.".to_owned()));
                kinds.push(PartKind::Media(image(plan)));
            }
            PlannedContent::Calls(calls) => {
                if plan.report_signatures {
                    kinds.push(text_part(format!("proofs={}.", options.signatures)));
                }
                let numbered = calls.iter().enumerate();
                kinds.extend(numbered.map(|(number, planned)| call(options, planned, number)));
            }
        }
    }
    if plan.thinking {
        add_reasoning(options, &mut kinds);
    }
    kinds
        .into_iter()
        .map(|kind| Part { kind, at: None })
        .collect()
}

fn text_part(text: String) -> PartKind<'static> {
    PartKind::Text(text.into())
}

fn image(plan: &ResponsePlan) -> Media<'static> {
    Media {
        mime: "image/png".into(),
        source: Source::Base64(sample_image::base64_png(plan.weight).into()),
        name: None,
        detail: None,
    }
}

fn prose(words: usize) -> String {
    let words: Vec<&str> = PROSE.into_iter().cycle().take(words).collect();
    words.join(" ")
}

fn in_output_format(format: &OutputFormat<'_>) -> String {
    match format {
        OutputFormat::Text | OutputFormat::Json => r#"{"answer":"example"}"#.to_owned(),
        OutputFormat::Schema { schema, .. } => example(schema).to_string(),
        OutputFormat::Enum(schema) => match example(schema) {
            serde_json::Value::String(word) => word,
            other => other.to_string(),
        },
    }
}

/// Adds reasoning, with a signature where the format's own models put it.
fn add_reasoning(options: &ContentOptions<'_>, kinds: &mut Vec<PartKind<'static>>) {
    let hash = options.body_hash.short();
    let mut signature = signatures::of_reasoning(options.format, hash, REASONING);
    let mut calls = kinds.iter_mut().filter_map(|kind| match kind {
        PartKind::Call(call) => Some(call),
        _ => None,
    });
    if let (Format::Native, Some(call)) = (options.format, calls.next()) {
        call.signature = Some(signatures::of_call(hash, &call.name));
        signature = None;
    }
    let reasoning = PartKind::Reasoning {
        text: REASONING.into(),
        signature,
    };
    kinds.insert(0, reasoning);
}

fn call(options: &ContentOptions<'_>, planned: &PlannedCall, number: usize) -> PartKind<'static> {
    let name = planned.name.as_deref();
    let tool = choose_tool(options.request, name, number);
    let hash = options.body_hash.short();
    let id = match options.format {
        Format::Chat | Format::Responses => Some(format!("call_mock{hash}{number}")),
        Format::Messages => Some(format!("toolu_mock{hash}{number}")),
        // Native models send no ids of calls.
        Format::Native | Format::Images => None,
    };
    let kind = tool.map_or(ToolKind::Function, |tool| tool.kind);
    let arguments = match (kind, tool.and_then(|tool| tool.schema.as_ref())) {
        _ if planned.arguments.is_some() => planned.arguments.clone().unwrap_or_default(),
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

fn finish(request: &Request<'_>, plan: &ResponsePlan, parts: &[Part<'_>]) -> Finish<'static> {
    let called = |part: &Part<'_>| matches!(part.kind, PartKind::Call(_));
    match plan.finish {
        PlannedFinish::Length => Finish::Length,
        PlannedFinish::Refusal => Finish::Refused,
        PlannedFinish::Filtered => Finish::Filtered(None),
        PlannedFinish::StopSequence => {
            let word = request.sampling.stop.first();
            let word = word.map_or_else(|| "END".to_owned(), |word| word.clone().into_owned());
            Finish::StopSequence(Some(word.into()))
        }
        PlannedFinish::Natural if parts.iter().any(called) => Finish::Tools,
        PlannedFinish::Natural => Finish::Stop,
    }
}

/// Counts usage: one word is one token.
fn count(request: &Request<'_>, parts: &[Part<'_>], choices: u32) -> Usage {
    let is_reasoning = |part: &&Part<'_>| matches!(part.kind, PartKind::Reasoning { .. });
    let thinking: u64 = parts.iter().filter(is_reasoning).map(words_of_part).sum();
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

/// Counts the words of a request.
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

/// Counts the words of a text, byte by byte: prompts may be many megabytes.
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
    use crate::mock::body_hash::CREATED;
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

    fn response(format: Format, request: &Request<'_>, words: &str) -> Response<'static> {
        let plan = ResponsePlan::for_prompt(words, "demo").unwrap();
        let options = ContentOptions {
            format,
            request,
            model: "demo",
            body_hash: &BodyHash::of(b"body"),
            created: CREATED,
            signatures: 0,
            echo: &|| "echoed".to_owned(),
        };
        make_response(&options, &plan)
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
        let response = response(Format::Chat, &request(), "hello");
        assert_eq!(response.id, "chatcmpl-mock-230d8358dc8e");
        assert_eq!(response.created, 1_760_000_000);
        assert_eq!(
            response.choices[0].parts[0].kind,
            text_part("You said: hello".into())
        );
        assert_eq!(response.choices[0].finish, Finish::Stop);
        let usage = response.usage.unwrap();
        assert_eq!((usage.input, usage.output, usage.thinking), (3, 3, 0));
    }

    #[test]
    fn calls_take_the_declared_tools_in_turn() {
        let two = response(Format::Chat, &request(), "mock:parallel");
        let city = r#"{"city":"example"}"#;
        assert_eq!(calls(&two), [pair("find", city), pair("stop", "{}")]);
        assert_eq!(two.choices[0].finish, Finish::Tools);
        let named = response(Format::Chat, &request(), "mock:tool=stop");
        assert_eq!(calls(&named), [pair("stop", "{}")]);
        let none = response(Format::Chat, &Request::default(), "mock:tool");
        assert_eq!(calls(&none), [pair("get_weather", r#"{"city":"Paris"}"#)]);
    }

    #[test]
    fn calls_have_the_arguments_of_their_directives() {
        let words = r#"mock:tool=stop mock:arguments={"at": "noon"} mock:tool=find mock:tool"#;
        let three = response(Format::Messages, &request(), words);
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
        let forced = response(Format::Chat, &request, "mock:tool");
        assert_eq!(calls(&forced), [pair("stop", "{}")]);
    }

    #[test]
    fn reasoning_has_the_signature_of_the_response_format() {
        let signature = |format| match &response(format, &request(), "mock:thinking hi").choices[0]
            .parts[0]
            .kind
        {
            PartKind::Reasoning { signature, .. } => {
                signature.as_ref().map(|signature| signature.issuer)
            }
            other => panic!("reasoning comes first, not {other:?}"),
        };
        assert_eq!(signature(Format::Chat), None);
        assert_eq!(signature(Format::Messages), Some(Issuer::Thinking));
        assert_eq!(signature(Format::Native), Some(Issuer::Native));
        assert_eq!(signature(Format::Responses), Some(Issuer::Responses));
        let native = response(Format::Native, &request(), "mock:thinking mock:tool");
        let kinds = native.choices[0].parts.iter().map(|part| &part.kind);
        let [
            PartKind::Reasoning {
                signature: None, ..
            },
            PartKind::Call(call),
        ] = kinds.collect::<Vec<_>>()[..]
        else {
            panic!("reasoning without a signature, then the call that has it");
        };
        assert!(call.signature.is_some() && call.id.is_none());
        let usage = native.usage.unwrap();
        assert!(usage.thinking > 0 && usage.output > usage.thinking);
    }

    #[test]
    fn endings_and_choices_are_as_asked() {
        let finish = |words| {
            response(Format::Chat, &request(), words).choices[0]
                .finish
                .clone()
        };
        assert_eq!(finish("mock:length"), Finish::Length);
        assert_eq!(finish("mock:filtered"), Finish::Filtered(None));
        assert_eq!(
            finish("mock:stop_sequence"),
            Finish::StopSequence(Some("END".into()))
        );
        let refused = response(Format::Chat, &request(), "mock:refusal");
        assert_eq!(refused.choices[0].finish, Finish::Refused);
        assert_eq!(
            refused.choices[0].parts[0].kind,
            PartKind::Refusal(REFUSAL.into())
        );
        let mut three = request();
        three.sampling.choices = Some(3);
        let three = response(Format::Chat, &three, "hi");
        assert_eq!(three.choices.len(), 3);
        assert_eq!(three.usage.unwrap().output, 9);
    }
}
