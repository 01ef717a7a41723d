//! Tests of decoding requests of a client.

use super::{decode, signature};
use crate::model::{
    Action, Arguments, Depth, Effort, ImageSize, Issuer, OutputFormat, PartKind, Role, Scale,
    Search, Source, Text, ToolChoice,
};

fn decode_lossless(body: &str) -> crate::model::Request<'_> {
    let (request, losses) = decode(body).unwrap();
    assert_eq!(losses, [], "the request has losses: {body}");
    request
}

#[test]
fn turns_keep_their_indexes_and_the_system_prompt_comes_first() {
    let request = decode_lossless(
        r#"{"model":"models/m-1","systemInstruction":{"role":"user","parts":[{"text":"Be brief."}]},
        "contents":[{"parts":[{"text":"2+2?"}]},{"role":"model","parts":[{"text":"4"}]},
        {"role":"user","parts":[{"text":"a"},{"text":"b"}]}]}"#,
    );
    let turns: Vec<_> = request
        .turns
        .iter()
        .map(|turn| (turn.role, turn.at))
        .collect();
    assert_eq!(
        turns,
        [
            (Role::System, None),
            (Role::User, Some(0)),
            (Role::Model, Some(1)),
            (Role::User, Some(2))
        ]
    );
    assert_eq!(
        request.turns[0].parts[0].kind,
        PartKind::Text("Be brief.".into())
    );
    assert_eq!(request.turns[3].parts[1].at, Some(1));
}

#[test]
fn text_without_escapes_is_borrowed() {
    let request = decode_lossless(r#"{"contents":[{"parts":[{"text":"plain"}]}]}"#);
    let PartKind::Text(Text::Borrowed("plain")) = &request.turns[0].parts[0].kind else {
        panic!("the text was copied");
    };
}

#[test]
fn fields_are_decoded_in_both_spellings() {
    let camel = r#"{"systemInstruction":{"parts":[{"text":"S"}]},"contents":[
        {"parts":[{"inlineData":{"mimeType":"image/png","data":"+/8="}},
                  {"fileData":{"mimeType":"image/png","fileUri":"https://e.com/a","displayName":"n"}}]},
        {"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"c2ln"}]},
        {"parts":[{"functionResponse":{"name":"f","response":{}}}]}],
        "tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object"}}]},
                 {"googleSearch":{}},{"codeExecution":{}}],
        "toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},
        "generationConfig":{"topP":0.5,"topK":40.0,"maxOutputTokens":9,"candidateCount":2,
            "stopSequences":["x"],"presencePenalty":0.5,"frequencyPenalty":0.25,
            "responseMimeType":"application/json","responseJsonSchema":{"type":"object"},
            "responseModalities":["TEXT","IMAGE"],"responseLogprobs":true,"logprobs":3,
            "thinkingConfig":{"includeThoughts":true,"thinkingBudget":7}},
        "serviceTier":"standard"}"#;
    let mut snake = String::new();
    for letter in camel.chars() {
        snake.extend(letter.is_ascii_uppercase().then_some('_'));
        snake.push(letter.to_ascii_lowercase());
    }
    // Only names change; these are values.
    let snake = snake
        .replace("\"_s\"", "\"S\"")
        .replace("_a_n_y", "ANY")
        .replace("_t_e_x_t", "TEXT")
        .replace("_i_m_a_g_e", "IMAGE");
    let (camel, snake) = (decode_lossless(camel), decode_lossless(&snake));
    assert_eq!(camel, snake);
    assert!(camel.code_execution && camel.output.images && camel.sampling.logprobs);
    assert_eq!(camel.search, Some(Search::default()));
    assert_eq!(camel.tool_choice, Some(ToolChoice::One("f".into())));
    assert_eq!(camel.sampling.top_k, Some(40));
    assert_eq!(camel.sampling.top_logprobs, Some(3));
    assert_eq!(camel.thinking.depth, Some(Depth::Budget(7)));
    assert_eq!(camel.labels.service_tier.as_deref(), Some("default"));
}

#[test]
fn media_is_decoded_from_either_alphabet_and_text_as_text() {
    let request = decode_lossless(
        r#"{"contents":[{"parts":[{"inlineData":{"mime_type":"image/png","data":"-_8"}},
        {"inlineData":{"mimeType":"text/csv","data":"YSxi","displayName":"t.csv"}}]}]}"#,
    );
    let media: Vec<_> = request.turns[0]
        .parts
        .iter()
        .map(|part| match &part.kind {
            PartKind::Media(media) => (&*media.mime, media.source.clone(), media.name.as_deref()),
            other => panic!("{other:?} is no media"),
        })
        .collect();
    assert_eq!(
        media,
        [
            ("image/png", Source::Base64("+/8=".into()), None),
            ("text/csv", Source::Plain("a,b".into()), Some("t.csv"))
        ]
    );
}

fn ids(body: &str) -> Vec<Option<String>> {
    let parts = decode_lossless(body)
        .turns
        .into_iter()
        .flat_map(|turn| turn.parts);
    parts
        .filter_map(|part| match part.kind {
            PartKind::Call(call) => Some(call.id),
            PartKind::Result(result) => Some(result.id),
            _ => None,
        })
        .map(|id| id.map(Text::into_owned))
        .collect()
}

#[test]
fn calls_without_ids_and_their_results_are_paired_by_name_and_order() {
    let body = r#"{"contents":[{"role":"model","parts":[
        {"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"g","args":{}}},
        {"functionCall":{"name":"f","args":{}}},{"functionCall":{"name":"h","args":{},"id":"own"}}]},
        {"role":"user","parts":[
        {"functionResponse":{"name":"f","response":{}}},{"functionResponse":{"name":"h","response":{}}},
        {"functionResponse":{"name":"f","response":{},"id":"made-up"}},
        {"functionResponse":{"name":"g","response":{}}},{"functionResponse":{"name":"g","response":{}}}]}]}"#;
    let found = ids(body);
    assert_eq!(found, ids(body), "a retry must say the same");
    let at = |number: usize| found[number].clone();
    assert!(at(0).is_some_and(|id| id.starts_with("call_") && id.len() == 29));
    assert_ne!(at(0), at(2));
    assert_eq!([at(4), at(5), at(6), at(7)], [at(0), at(3), at(2), at(1)]);
    assert_eq!(at(3).as_deref(), Some("own"));
    assert_eq!(at(8), None, "no call of g is left to answer");
}

#[test]
fn a_result_never_answers_a_call_of_an_earlier_step() {
    let found = ids(
        r#"{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},
        {"parts":[{"text":"never mind"}]},{"role":"model","parts":[{"functionCall":{"name":"f"}}]},
        {"parts":[{"functionResponse":{"name":"f","response":{}}}]}]}"#,
    );
    assert_eq!(found[2], found[1]);
    assert_ne!(found[2], found[0]);
}

#[test]
fn results_come_first() {
    let request = decode_lossless(
        r#"{"contents":[{"role":"user","parts":[{"text":"See?"},
        {"functionResponse":{"name":"a","response":{"output":"18 C"}}},
        {"functionResponse":{"name":"b","response":{"output":[1,2]}}},
        {"functionResponse":{"name":"c","response":{"error":"not found"}}},
        {"functionResponse":{"name":"d","response":{"sky":"clear","output":1},
            "parts":[{"inlineData":{"mimeType":"image/png","data":"aGk="}}]}}]}]}"#,
    );
    let parts = &request.turns[0].parts;
    let indexes: Vec<_> = parts.iter().map(|part| part.at.unwrap()).collect();
    assert_eq!(indexes, [1, 2, 3, 4, 0]);
    let results: Vec<_> = parts
        .iter()
        .filter_map(|part| match &part.kind {
            PartKind::Result(result) => Some((&result.parts[0].kind, result.failed, result)),
            _ => None,
        })
        .collect();
    let expected = [
        ("18 C", false),
        ("[1,2]", false),
        ("not found", true),
        (r#"{"sky":"clear","output":1}"#, false),
    ];
    for ((text, failed, _), (expected_text, error)) in results.iter().zip(expected) {
        assert_eq!(
            (*text, *failed),
            (&PartKind::Text(expected_text.into()), error)
        );
    }
    assert!(matches!(results[3].2.parts[1].kind, PartKind::Media(_)));
}

#[test]
fn thoughts_are_joined_until_a_signature() {
    let request = decode_lossless(
        r#"{"contents":[{"role":"model","parts":[{"text":"Let ","thought":true},
        {"text":"me.","thought":true,"thoughtSignature":"b21uaWdsb3QvMSBtClJYSlZRa05yV1VsQg"},
        {"text":"More.","thought":true},{"text":"42","thoughtSignature":"Q2lR"},
        {"functionCall":{"name":"f"},"thoughtSignature":"c2ln"},{"text":"","thoughtSignature":"ZW5k"}]}]}"#,
    );
    let reasoning = |text: &'static str, signature| PartKind::Reasoning {
        text: text.into(),
        signature: Some(signature),
    };
    let parts: Vec<_> = request.turns[0]
        .parts
        .iter()
        .map(|part| &part.kind)
        .collect();
    assert_eq!(
        *parts[0],
        reasoning("Let me.", signature(Issuer::Thinking, "RXJVQkNrWUlB"))
    );
    assert_eq!(
        *parts[1],
        reasoning("More.", signature(Issuer::Native, "Q2lR"))
    );
    assert_eq!(*parts[2], PartKind::Text("42".into()));
    let PartKind::Call(call) = parts[3] else {
        panic!("{:?} is no call", parts[3]);
    };
    assert_eq!(call.signature, Some(signature(Issuer::Native, "c2ln")));
    assert!(matches!(&call.arguments, Arguments::Tree(tree) if tree.to_string() == "{}"));
    assert_eq!(*parts[4], reasoning("", signature(Issuer::Native, "ZW5k")));
    assert_eq!(parts.len(), 5);
}

#[test]
fn tools_are_decoded_with_their_schemas_and_indexes() {
    let request = decode_lossless(
        r#"{"contents":[],"tools":[{"vendorSearch":{}},{"functionDeclarations":[
        {"name":"a"},{"name":"b.c","description":"B","parameters":{"type":"OBJECT","properties":{}}}]}]}"#,
    );
    let tool = &request.tools[1];
    assert_eq!(
        (&*tool.name, tool.description.as_deref()),
        ("b.c", Some("B"))
    );
    let schema = tool
        .schema
        .as_ref()
        .map(|schema| serde_json::to_string(schema).unwrap());
    assert_eq!(
        schema.as_deref(),
        Some(r#"{"type":"object","properties":{}}"#)
    );
    assert_eq!(request.tools[0].schema, None);
    assert_eq!((request.tools[0].at, tool.at), (1 << 16, 1 << 16 | 1));
    assert!(request.search.is_some() && !request.code_execution);
}

#[test]
fn tool_choices_are_decoded() {
    let choice = |config: &str| {
        let body = format!(r#"{{"toolConfig":{{"functionCallingConfig":{config}}}}}"#);
        let (request, losses) = decode(&body).unwrap();
        let choice = format!("{:?}", request.tool_choice);
        (choice, losses.len())
    };
    let expected = |choice: Option<ToolChoice<'_>>, losses: usize| (format!("{choice:?}"), losses);
    let names = || vec!["a".into(), "b".into()];
    for (config, expected) in [
        (r#"{}"#, expected(None, 0)),
        (r#"{"mode":"MODE_UNSPECIFIED"}"#, expected(None, 0)),
        (r#"{"mode":"AUTO"}"#, expected(Some(ToolChoice::Auto), 0)),
        (r#"{"mode":"NONE"}"#, expected(Some(ToolChoice::None), 0)),
        (r#"{"mode":"any"}"#, expected(Some(ToolChoice::Required), 0)),
        (
            r#"{"mode":"ANY","allowedFunctionNames":["a"]}"#,
            expected(Some(ToolChoice::One("a".into())), 0),
        ),
        (
            r#"{"mode":"ANY","allowedFunctionNames":["a","b"]}"#,
            expected(
                Some(ToolChoice::Subset {
                    names: names(),
                    required: true,
                }),
                0,
            ),
        ),
        (
            r#"{"mode":"VALIDATED","allowedFunctionNames":["a","b"]}"#,
            expected(
                Some(ToolChoice::Subset {
                    names: names(),
                    required: false,
                }),
                1,
            ),
        ),
        (
            r#"{"mode":"VALIDATED"}"#,
            expected(Some(ToolChoice::Auto), 1),
        ),
        (
            r#"{"mode":"AUTO","allowedFunctionNames":["a"]}"#,
            expected(Some(ToolChoice::Auto), 1),
        ),
    ] {
        assert_eq!(choice(config), expected, "{config}");
    }
}

#[test]
fn thinking_configs_are_decoded() {
    let depth = |config: &str| {
        let body = format!(r#"{{"generationConfig":{{"thinkingConfig":{config}}}}}"#);
        decode_lossless(&body).thinking.depth
    };
    for (config, expected) in [
        ("{}", None),
        (r#"{"thinkingBudget":0}"#, Some(Depth::Off)),
        (r#"{"thinkingBudget":-1}"#, Some(Depth::Dynamic)),
        (r#"{"thinkingBudget":4096}"#, Some(Depth::Budget(4096))),
        (
            r#"{"thinkingLevel":"MINIMAL"}"#,
            Some(Depth::Effort(Effort::Minimal)),
        ),
        (
            r#"{"thinkingLevel":"low"}"#,
            Some(Depth::Effort(Effort::Low)),
        ),
        (
            r#"{"thinkingLevel":"MEDIUM"}"#,
            Some(Depth::Effort(Effort::Medium)),
        ),
        (
            r#"{"thinkingLevel":"HIGH"}"#,
            Some(Depth::Effort(Effort::High)),
        ),
    ] {
        assert_eq!(depth(config), expected, "{config}");
    }
}

#[test]
fn output_formats_are_decoded() {
    let shape = |config: &str| {
        let body = format!(r#"{{"generationConfig":{config}}}"#);
        format!("{:?}", decode_lossless(&body).output.format)
    };
    assert_eq!(shape("{}"), format!("{:?}", OutputFormat::Text));
    assert_eq!(
        shape(r#"{"responseMimeType":"application/json"}"#),
        format!("{:?}", OutputFormat::Json)
    );
    let schema = shape(
        r#"{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","nullable":true}}"#,
    );
    assert!(
        schema.starts_with("Schema") && schema.contains("null"),
        "{schema}"
    );
    let description = shape(
        r#"{"responseMimeType":"text/x.enum","responseSchema":{"type":"STRING","enum":["A"]}}"#,
    );
    assert!(
        description.starts_with("Enum") && description.contains("\"A\""),
        "{description}"
    );
}

#[test]
fn null_is_the_same_as_absent() {
    let request = decode_lossless(
        r#"{"contents":[{"role":null,"parts":[{"text":"Hi","thought":null}]}],"tools":null,
        "generationConfig":{"temperature":null,"responseSchema":null},"cachedContent":null}"#,
    );
    assert_eq!(request.turns[0].role, Role::User);
    assert_eq!(request.sampling.temperature, None);
}

#[test]
fn fields_that_no_other_format_has_are_reported_with_their_path() {
    let (request, losses) = decode(
        r#"{"contents":[{"parts":[{"text":"a","thought":true,"videoMetadata":{"fps":1}},{"novel":1}]},
        {"role":"model","parts":[{"executableCode":{"code":"1+1"}},
            {"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}}]}],
        "tools":[{"google_search":{"timeRangeFilter":{}}}],
        "toolConfig":{"retrievalConfig":{"latLng":{"latitude":1,"longitude":2}}},
        "safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],
        "generation_config":{"mediaResolution":"MEDIA_RESOLUTION_LOW","speechConfig":{},
            "imageConfig":{"aspectRatio":"16:9","imageSize":"4K","novel":1}},
        "serviceTier":"novel","labels":{"a":"b"},"novel":1}"#,
    )
    .unwrap();
    let dropped = |path: &str| (Action::Dropped, path.to_owned());
    let expected = [
        dropped("contents[0].parts[0].thought"),
        dropped("contents[0].parts[0].videoMetadata"),
        dropped("contents[0].parts[1].novel"),
        dropped("contents[1].parts[0].executableCode"),
        (
            Action::Approximated,
            "contents[1].parts[1].codeExecutionResult".to_owned(),
        ),
        dropped("tools[0].google_search.timeRangeFilter"),
        dropped("toolConfig.retrievalConfig"),
        dropped("safetySettings"),
        dropped("generation_config.imageConfig.novel"),
        dropped("generation_config.mediaResolution"),
        dropped("generation_config.speechConfig"),
        dropped("serviceTier"),
        dropped("labels"),
        dropped("novel"),
    ];
    assert_eq!(losses, expected);
    let size = ImageSize::Shape {
        ratio: Some((16, 9)),
        scale: Some(Scale::Four),
    };
    assert_eq!(request.output.image_options.size, Some(size));
    assert_eq!(request.turns[0].parts[0].kind, PartKind::Text("a".into()));
    assert_eq!(request.turns[1].parts[0].kind, PartKind::Text("2".into()));
}
