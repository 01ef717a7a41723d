//! Tests of validation: requests that are refused, with the path of the field.

use super::decode;
use crate::model::Role;

fn refused_at(body: &str) -> String {
    let api_error = decode(body).expect_err(body);
    assert_eq!(api_error.status, 400, "{body}");
    let param = api_error.param.clone().unwrap_or_default();
    assert!(
        api_error.message.contains(&param),
        "{} names {param}",
        api_error.message
    );
    param
}

#[test]
fn settings_out_of_range_are_refused() {
    for (config, field) in [
        (r#""temperature":2.1"#, "temperature"),
        (r#""temperature":-0.1"#, "temperature"),
        (r#""temperature":"hot""#, "temperature"),
        (r#""topP":1.01"#, "topP"),
        (r#""top_p":-1"#, "top_p"),
        (r#""topK":-1"#, "topK"),
        (r#""topK":1.5"#, "topK"),
        (r#""maxOutputTokens":0"#, "maxOutputTokens"),
        (r#""candidateCount":0"#, "candidateCount"),
        (r#""presencePenalty":2.5"#, "presencePenalty"),
        (r#""frequencyPenalty":-2.5"#, "frequencyPenalty"),
        (
            r#""stopSequences":["1","2","3","4","5","6"]"#,
            "stopSequences",
        ),
        (r#""stopSequences":["1",2]"#, "stopSequences[1]"),
        (r#""logprobs":3"#, "logprobs"),
        (r#""responseLogprobs":false,"logprobs":3"#, "logprobs"),
        (r#""responseLogprobs":true,"logprobs":21"#, "logprobs"),
        (r#""responseLogprobs":true,"logprobs":-1"#, "logprobs"),
        (r#""responseMimeType":"text/html""#, "responseMimeType"),
        (r#""responseMimeType":"text/x.enum""#, "responseSchema"),
        (r#""responseSchema":{"type":"OBJECT"}"#, "responseSchema"),
        (
            r#""responseMimeType":"application/json","responseSchema":"OBJECT""#,
            "responseSchema",
        ),
        (
            r#""responseMimeType":"application/json","responseSchema":{},"responseJsonSchema":{}"#,
            "responseJsonSchema",
        ),
        (
            r#""responseModalities":["TEXT","VIDEO"]"#,
            "responseModalities[1]",
        ),
        (
            r#""thinkingConfig":{"thinkingBudget":-2}"#,
            "thinkingConfig.thinkingBudget",
        ),
        (
            r#""thinkingConfig":{"thinkingLevel":"MAX"}"#,
            "thinkingConfig.thinkingLevel",
        ),
        (
            r#""thinkingConfig":{"thinkingBudget":1,"thinking_level":"LOW"}"#,
            "thinkingConfig.thinking_level",
        ),
        (
            r#""imageConfig":{"aspectRatio":"7:5"}"#,
            "imageConfig.aspectRatio",
        ),
        (
            r#""imageConfig":{"imageSize":"8K"}"#,
            "imageConfig.imageSize",
        ),
        (r#""mediaResolution":"HUGE""#, "mediaResolution"),
    ] {
        let body = format!(r#"{{"generationConfig":{{{config}}}}}"#);
        assert_eq!(refused_at(&body), format!("generationConfig.{field}"));
    }
}

#[test]
fn invalid_parts_are_refused() {
    for (part, field) in [
        (
            r#"{"inlineData":{"mimeType":"a/b","data":""},"fileData":{"fileUri":"https://e.com/"}}"#,
            "fileData",
        ),
        (
            r#"{"text":"a","inline_data":{"mimeType":"a/b","data":""}}"#,
            "inline_data",
        ),
        (
            r#"{"inlineData":{"mimeType":"a/b","data":"data:a/b;base64,AAAA"}}"#,
            "inlineData.data",
        ),
        (r#"{"inlineData":{"data":"AAAA"}}"#, "inlineData.mimeType"),
        (r#"{"inlineData":{"mimeType":"a/b"}}"#, "inlineData.data"),
        (
            r#"{"fileData":{"fileUri":"http://e.com/a"}}"#,
            "fileData.fileUri",
        ),
        (
            r#"{"fileData":{"file_uri":"files/abc"}}"#,
            "fileData.file_uri",
        ),
        (r#"{"fileData":{"mimeType":"a/b"}}"#, "fileData.fileUri"),
        (r#"{"functionCall":{"name":"f"}}"#, "functionCall"),
        (
            r#"{"functionResponse":{"response":{}}}"#,
            "functionResponse.name",
        ),
        (
            r#"{"functionResponse":{"name":"f","response":"x"}}"#,
            "functionResponse.response",
        ),
        (r#"{"text":7}"#, "text"),
    ] {
        let body = format!(r#"{{"contents":[{{}},{{"role":"user","parts":[{part}]}}]}}"#);
        assert_eq!(refused_at(&body), format!("contents[1].parts[0].{field}"));
    }
    let model = |part: &str| format!(r#"{{"contents":[{{"role":"model","parts":[{part}]}}]}}"#);
    let call = model(r#"{"functionCall":{"name":"f","args":"x"}}"#);
    assert_eq!(refused_at(&call), "contents[0].parts[0].functionCall.args");
    let answer = model(r#"{"functionResponse":{"name":"f","response":{}}}"#);
    assert_eq!(refused_at(&answer), "contents[0].parts[0].functionResponse");
}

#[test]
fn other_invalid_fields_are_refused() {
    for (body, field) in [
        (r#"{"contents":{}}"#, "contents"),
        (r#"{"contents":["Hi"]}"#, "contents[0]"),
        (r#"{"contents":[{"role":"cook"}]}"#, "contents[0].role"),
        (
            r#"{"contents":[{"role":"function","parts":[]}]}"#,
            "contents[0].role",
        ),
        (
            r#"{"contents":[{"role":"tool","parts":[{"functionResponse":{"name":"f"}},{"text":"a"}]}]}"#,
            "contents[0].role",
        ),
        (
            r#"{"contents":[{"parts":[{"text":"a"}],"role":"FUNCTION"}]}"#,
            "contents[0].role",
        ),
        (
            r#"{"contents":[{"parts":{"text":"Hi"}}]}"#,
            "contents[0].parts",
        ),
        (
            r#"{"system_instruction":{"parts":[{"text":"a"},{"inlineData":{}}]}}"#,
            "system_instruction.parts[1]",
        ),
        (
            r#"{"tools":[{"functionDeclarations":[{}]}]}"#,
            "tools[0].functionDeclarations[0].name",
        ),
        (
            r#"{"tools":[{"functionDeclarations":[{"name":"a b"}]}]}"#,
            "tools[0].functionDeclarations[0].name",
        ),
        (
            r#"{"tools":[{"functionDeclarations":[{"name":"a","parameters":{},"parameters_json_schema":{}}]}]}"#,
            "tools[0].functionDeclarations[0].parameters_json_schema",
        ),
        (r#"{"tools":[{"vendorMaps":{}}]}"#, "tools[0].vendorMaps"),
        (
            r#"{"tools":[{},{"url_context":{}}]}"#,
            "tools[1].url_context",
        ),
        (
            r#"{"toolConfig":{"functionCallingConfig":{"mode":"SOME"}}}"#,
            "toolConfig.functionCallingConfig.mode",
        ),
        (
            r#"{"toolConfig":{"retrievalConfig":{"latLng":{"latitude":91}}}}"#,
            "toolConfig.retrievalConfig.latLng.latitude",
        ),
        (
            r#"{"safetySettings":[{"category":"RUDE"}]}"#,
            "safetySettings[0].category",
        ),
        (
            r#"{"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"ALL"}]}"#,
            "safetySettings[0].threshold",
        ),
        (r#"{"cachedContent":"cachedContents/1"}"#, "cachedContent"),
        (r#"{"continuation_token":"x"}"#, "continuation_token"),
        (r#"{"generationConfig":[]}"#, "generationConfig"),
    ] {
        assert_eq!(refused_at(body), field);
    }
    for body in ["", "[]", "{", "null"] {
        assert_eq!(decode(body).unwrap_err().status, 400);
    }
}

#[test]
fn contents_of_function_responses_may_name_the_user_as_a_tool() {
    for role in ["user", "function", "tool", "Tool", ""] {
        let answer = r#"{"function_response":{"name":"f","response":{"output":"A"}}}"#;
        let body = format!(r#"{{"contents":[{{"role":"{role}","parts":[{answer},{answer}]}}]}}"#);
        let (request, losses) = decode(&body).expect(role);
        assert_eq!(request.turns[0].role, Role::User);
        assert_eq!((request.turns[0].parts.len(), losses.len()), (2, 0));
    }
}

#[test]
fn the_first_invalid_field_is_named() {
    for (body, field) in [
        // It stops being JSON only later.
        (
            r#"{"generationConfig":{"topP":7},"contents":["#,
            "generationConfig.topP",
        ),
        (
            r#"{"generationConfig":{"topK":1e999}}"#,
            "generationConfig.topK",
        ),
        // Elements come in their order, and an object before what is missing in it.
        (
            r#"{"contents":[{"parts":[{"text":7}]},{"role":"cook"}],"tools":7}"#,
            "contents[0].parts[0].text",
        ),
        (
            r#"{"contents":[{"parts":[{"inlineData":{"data":"-data:"}}]}]}"#,
            "contents[0].parts[0].inlineData.data",
        ),
        (
            r#"{"generation_config":{"stop_sequences":["1","2","3","4","5",6]}}"#,
            "generation_config.stop_sequences[5]",
        ),
    ] {
        assert_eq!(refused_at(body), field);
    }
}
