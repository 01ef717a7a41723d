//! No bytes make a decoder panic: neither noise nor a valid body with an odd value in it.

use std::sync::LazyLock;

use omniglot::formats::{Capabilities, Operation, RequestHead, ResponseObserver, UpstreamTarget};
use omniglot::model::{Format, Losses, Request};
use omniglot::translate::{self, RequestSummary};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::Value;

use crate::many;

const GOOD: &[&str] = &[
    r#"{"model":"m","stream":true,"stream_options":{"include_usage":false},"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"t"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}}]},{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"r"}],"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}}],"tool_choice":{"type":"function","function":{"name":"f"}},"max_tokens":9,"temperature":1,"n":2,"stop":["x"],"response_format":{"type":"json_schema","json_schema":{"name":"n","schema":{"type":"object"}}},"reasoning_effort":"low","logprobs":true,"top_logprobs":2,"seed":1}"#,
    r#"{"model":"m","max_tokens":9,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":[{"type":"text","text":"t"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},{"role":"assistant","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"}],"is_error":true}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}],"tool_choice":{"type":"tool","name":"f"},"thinking":{"type":"enabled","budget_tokens":1024},"stop_sequences":["x"],"stream":true,"metadata":{"user_id":"u"}}"#,
    r#"{"contents":[{"role":"user","parts":[{"text":"t"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"c2k="}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"r":1}}}]}],"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}}]},{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},"generationConfig":{"maxOutputTokens":9,"temperature":1,"candidateCount":2,"stopSequences":["x"],"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"},"thinkingConfig":{"thinkingBudget":5,"includeThoughts":true}}}"#,
    r#"{"model":"m","instructions":"s","input":[{"role":"user","content":[{"type":"input_text","text":"t"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"h"}],"encrypted_content":"e"},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"r"}],"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":true},{"type":"web_search"}],"tool_choice":{"type":"function","name":"f"},"text":{"format":{"type":"json_schema","name":"n","schema":{"type":"object"}}},"reasoning":{"effort":"low","summary":"auto"},"max_output_tokens":16,"stream":true,"store":false}"#,
    r#"{"id":"i","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"t","reasoning_content":"h","tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}],"annotations":[{"type":"url_citation","url_citation":{"url":"https://a","title":"A","start_index":0,"end_index":1}}]},"delta":{"content":"t","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{}"}}]},"logprobs":{"content":[{"token":"t","logprob":-1,"top_logprobs":[]}]},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":5,"prompt_tokens_details":{"cached_tokens":1},"completion_tokens_details":{"reasoning_tokens":2}}}"#,
    r#"{"id":"i","type":"message","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"h","signature":"s"},{"type":"text","text":"t","citations":[{"type":"web_search_result_location","url":"https://a","title":"A"}]},{"type":"tool_use","id":"c","name":"f","input":{"a":1}}],"stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":2,"cache_read_input_tokens":1,"cache_creation_input_tokens":1}}"#,
    r#"{"candidates":[{"content":{"parts":[{"text":"h","thought":true,"thoughtSignature":"s"},{"text":"t"},{"functionCall":{"name":"f","args":{}}}],"role":"model"},"finishReason":"STOP","index":0,"groundingMetadata":{"groundingChunks":[{"web":{"uri":"https://a","title":"A"}}],"groundingSupports":[{"segment":{"startIndex":0,"endIndex":1,"text":"t"},"groundingChunkIndices":[0]}]},"logprobsResult":{"chosenCandidates":[{"token":"t","logProbability":-1}],"topCandidates":[{"candidates":[]}]}}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":2,"thoughtsTokenCount":1},"modelVersion":"m","responseId":"i","createTime":"2025-01-01T00:00:00Z"}"#,
    r#"{"id":"i","object":"response","created_at":1,"status":"completed","model":"m","output":[{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"h"}],"encrypted_content":"e"},{"type":"message","id":"msg","role":"assistant","content":[{"type":"output_text","text":"t","annotations":[{"type":"url_citation","url":"https://a","title":"A","start_index":0,"end_index":1}],"logprobs":[]}]},{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}],"usage":{"input_tokens":1,"output_tokens":2,"input_tokens_details":{"cached_tokens":1},"output_tokens_details":{"reasoning_tokens":1}}}"#,
    r#"{"type":"message_start","message":{"id":"i","model":"m","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"i","model":"m","created_at":1,"output":[]}}"#,
    r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg","output_index":0,"content_index":0,"delta":"t"}"#,
    r#"{"error":{"message":"no","type":"server_error","code":500,"status":"INTERNAL","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"3s"}]}}"#,
    r#"{"model":"m","prompt":"p","n":2,"size":"10x20","quality":"high","output_format":"png","output_compression":1,"background":"opaque","moderation":"low","response_format":"url","stream":true,"partial_images":1,"user":"u","async":false,"images":[{"image_url":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"},{"file_id":"f"}],"mask":"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1Pe"}"#,
    r#"{"created":1,"data":[{"b64_json":"iVBORw0KGgo=","revised_prompt":"r"},{"url":"https://a"}],"usage":{"input_tokens":1,"output_tokens":2,"input_tokens_details":{"image_tokens":1,"text_tokens":0},"output_tokens_details":{"image_tokens":2,"text_tokens":0}}}"#,
    r#"{"type":"image_generation.completed","b64_json":"iVBORw0KGgo=","created_at":1,"usage":{"input_tokens":1,"output_tokens":2}}"#,
];

/// The one body that is no JSON.
const FORM: &[u8] = b"--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n\
    --b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\np\r\n\
    --b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a\"\r\n\r\n\xff\xd8\xff\xe0\0\x04ab\xff\xc2\0\x0b\r\n--b--\r\n";

const ODD: &[&str] = &[
    "null",
    "true",
    "0",
    "-1",
    "18446744073709551615",
    "9223372036854775808",
    "1e300",
    "-1e300",
    "0.5",
    "\"\"",
    "\"é😀\"",
    "\"{\\\"a\\\":\"",
    "[]",
    "{}",
    "[null]",
    "[[]]",
    "{\"type\":\"x\"}",
    "[{\"type\":\"text\"}]",
    "\"data:;base64,\"",
    "\"999999999999999999999s\"",
];

static TREES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let parse = |body: &&str| serde_json::from_str(body).expect("JSON");
    GOOD.iter().map(parse).collect()
});

/// Puts `odd` in the place of the node number `at`, counted from the root down.
fn graft(tree: &mut Value, at: &mut usize, odd: &Value) -> bool {
    if *at == 0 {
        *tree = odd.clone();
        return true;
    }
    *at -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().any(|item| graft(item, at, odd)),
        Value::Object(fields) => fields.values_mut().any(|field| graft(field, at, odd)),
        _ => false,
    }
}

fn grafted() -> impl Strategy<Value = Vec<u8>> {
    let grafts = vec((0usize..90, select(ODD)), 1..3);
    (0..GOOD.len(), grafts).prop_map(|(number, grafts)| {
        let mut tree = TREES[number].clone();
        for (mut at, odd) in grafts {
            graft(
                &mut tree,
                &mut at,
                &serde_json::from_str(odd).expect("JSON"),
            );
        }
        tree.to_string().into_bytes()
    })
}

fn damaged() -> impl Strategy<Value = Vec<u8>> {
    (
        select(GOOD),
        any::<u16>(),
        0usize..9,
        vec(any::<u8>(), 0..4),
    )
        .prop_map(|(body, at, gone, new)| {
            let mut bytes = body.as_bytes().to_vec();
            let start = usize::from(at) % bytes.len();
            let end = (start + gone).min(bytes.len());
            bytes.splice(start..end, new);
            bytes
        })
}

fn damaged_form() -> impl Strategy<Value = Vec<u8>> {
    let change = (any::<Index>(), 0..4usize, vec(any::<u8>(), 0..4));
    vec(change, 1..4).prop_map(|changes| {
        let mut bytes = FORM.to_vec();
        for (at, gone, new) in changes {
            let start = at.index(bytes.len() + 1);
            let end = (start + gone).min(bytes.len());
            bytes.splice(start..end, new);
        }
        bytes
    })
}

fn noise() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        vec(any::<u8>(), 0..40),
        vec(select(&b"{}[]\":,\\u0d8 1e-nulltrue"[..]), 0..40),
    ]
}

/// Everything that reads bytes from outside.
fn read(format: Format, bytes: &[u8]) {
    let codec = format.codec();
    let losses = &mut Losses::default();
    let head = RequestHead {
        path_model: Some("m"),
        stream: false,
        text_only: false,
        ..RequestHead::default()
    };
    if let Ok(request) = codec.decode_request(&head, bytes, losses) {
        encode(&request, losses);
    }
    let _ = codec.decode_error(500, bytes);
    let _ = codec.observe_response(bytes, &mut ResponseObserver::default());
    let _ = codec.decode_routing_fields(bytes);
    let _ = RequestSummary::new(codec, Operation::Generate, None, bytes);
    if let Ok(response) = codec.decode_response(bytes, losses) {
        for to in Format::EVERY {
            let asked = crate::round_trips::response_options(false);
            let _ = to.codec().encode_response(&response, &asked, losses);
        }
    }
    if let Some(counter) = codec.token_counter() {
        let _ = counter.decode_count(bytes);
        let _ = counter.rename_model(bytes, "n");
        let _ = translate::estimate_token_count(format, bytes, losses);
        if let Ok(question) = counter.decode_count_request(bytes, losses) {
            encode(&question.request, losses);
        }
    }
    let text = String::from_utf8_lossy(bytes);
    let _ = codec.observe_event(&text, &mut ResponseObserver::default());
    let mut decoder = codec.stream_decoder();
    let _ = decoder.decode_event(&text, &mut |_| {});
    let _ = decoder.decode_event(&text, &mut |_| {});
    let _ = decoder.finish(&mut |_| {});
}

/// What was read can be said or refused by every format.
fn encode(request: &Request<'_>, losses: &mut Losses) {
    let capabilities = Capabilities::default();
    let target = UpstreamTarget {
        model: "m",
        stream: true,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "vendor",
        images_only: false,
    };
    for to in Format::EVERY {
        let _ = to.codec().encode_request(request, &target, losses);
        if let Some(counter) = to.codec().token_counter() {
            let _ = counter.encode_count_request(request, &target, losses);
        }
    }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn noise_is_refused_without_a_panic(bytes in noise()) {
        Format::EVERY.into_iter().for_each(|format| read(format, &bytes));
    }

    #[test]
    fn damaged_forms_are_decoded_or_refused(bytes in damaged_form()) {
        read(Format::Images, &bytes);
        let codec = Format::Images.codec();
        let _ = codec.content_type(&bytes);
        let _ = codec.rewrite_body(&bytes);
    }

    #[test]
    fn valid_bodies_with_odd_values_are_decoded_or_refused(bytes in grafted()) {
        Format::EVERY.into_iter().for_each(|format| read(format, &bytes));
    }

    #[test]
    fn damaged_bodies_are_decoded_or_refused(bytes in damaged()) {
        Format::EVERY.into_iter().for_each(|format| read(format, &bytes));
    }
}
