//! Tests which endpoint a method and a path mean.

use super::*;

fn parsed(method: &Method, path: &str, query: Option<&str>) -> Result<Endpoint, u16> {
    parse(method, path, query, &HeaderMap::new()).map_err(|api_error| api_error.status)
}

fn native(operation: Operation, model: &str) -> Endpoint {
    Endpoint::Model {
        format: Format::Native,
        operation,
        model: Some(model.to_owned()),
        has_headers_in_body: false,
        bedrock_stream: None,
    }
}

#[test]
fn native_operators_are_found_under_both_prefixes_and_spellings() {
    for prefix in ["/v1beta/models", "/v1/models"] {
        for colon in [":", "%3A", "%3a"] {
            let path = format!("{prefix}/a%2Fb-1.5{colon}generateContent");
            assert_eq!(
                parsed(&Method::POST, &path, None),
                Ok(native(Operation::Generate, "a/b-1.5"))
            );
        }
    }
    let path = "/v1beta/models/org/name:tag:streamGenerateContent";
    let sse = Operation::Stream(Framing::Sse);
    assert_eq!(
        parsed(&Method::POST, path, Some("alt=sse&x=1")),
        Ok(native(sse, "org/name:tag"))
    );
    let array = Operation::Stream(Framing::Array);
    assert_eq!(
        parsed(&Method::POST, path, None),
        Ok(native(array, "org/name:tag"))
    );
    assert_eq!(parsed(&Method::POST, path, Some("alt=xml")), Err(400));
    for (verb, query, status) in [
        ("generateContent", "alt=sse", 400),
        ("generateContent", "alt=xml", 400),
        ("generateContent", "alt=", 400),
        ("countTokens", "alt=sse", 400),
        ("countTokens", "x=1&alt=media", 400),
    ] {
        let path = format!("/v1beta/models/m:{verb}");
        assert_eq!(
            parsed(&Method::POST, &path, Some(query)),
            Err(status),
            "{verb} {query}"
        );
    }
    let path = "/v1beta/models/m:generateContent";
    let json = parsed(&Method::POST, path, Some("alt=json"));
    assert_eq!(json, Ok(native(Operation::Generate, "m")));
    assert_eq!(
        parsed(&Method::POST, "/v1beta/models/m:predict", None),
        Err(404)
    );
    assert_eq!(
        parsed(&Method::GET, "/v1beta/models/m:generateContent", None),
        Err(405)
    );
}

#[test]
fn ids_with_colons_are_not_operators() {
    let id = "ft:gpt-4o:acme:7Q2";
    assert_eq!(
        parsed(&Method::GET, &format!("/v1/models/{id}"), None),
        Ok(Endpoint::GetModel(Format::Chat, id.to_owned()))
    );
}

#[test]
fn a_model_id_may_end_like_an_operator() {
    let path = "/v1/models/llama:latest";
    assert_eq!(
        parsed(&Method::GET, path, None),
        Ok(Endpoint::GetModel(Format::Chat, "llama:latest".to_owned()))
    );
    assert_eq!(parsed(&Method::POST, path, None), Err(404));
}

#[test]
fn files_are_not_stored() {
    for path in [
        "/upload/v1beta/files",
        "/upload/v1/files",
        "/v1beta/files",
        "/v1beta/files/abc",
    ] {
        for method in [Method::POST, Method::GET, Method::DELETE] {
            assert_eq!(parsed(&method, path, None), Err(501), "{method} {path}");
        }
        assert_eq!(error_format(path), Format::Native);
    }
    assert_eq!(parsed(&Method::POST, "/v1beta/filesx", None), Err(404));
}

#[test]
fn errors_are_encoded_in_the_format_of_the_path() {
    for (path, format) in [
        ("/v1/messages", Format::Messages),
        ("/v1/messages/nowhere", Format::Messages),
        ("/v1/messagesx", Format::Chat),
        ("/v1/responses/nowhere", Format::Responses),
        ("/v1beta/nowhere", Format::Native),
        ("/v1/models/m:generateContent", Format::Native),
        ("/v1/models/m", Format::Chat),
        ("/", Format::Chat),
    ] {
        assert_eq!(error_format(path), format, "{path}");
    }
}
