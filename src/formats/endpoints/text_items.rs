//! The input of rankings and moderations: texts, or objects that may lead to something else than text.

use crate::formats::normalized_text::longest;
use crate::formats::token_input::count_inputs;
use crate::formats::{InputSummary, decode_unique_fields};
use crate::json::{DecodeResult, JsonReader, RawJson};

/// What the name of a field has that holds something else than text.
const MEDIA_WORDS: [&str; 6] = ["image", "audio", "video", "file", "pdf", "media"];

/// Summarizes the input of a ranking: the query is read with each of the documents.
pub(super) fn rerank_input(body: &[u8]) -> InputSummary {
    let Ok([query, documents]) = decode_unique_fields(body, [&["query"], &["documents"]]) else {
        return InputSummary::unreadable();
    };
    let query = query.value().map(RawJson::get).unwrap_or_default();
    let documents = documents.value().map(RawJson::get).unwrap_or_default();
    let mut is_text = matches!(read_item(&mut JsonReader::new(query), true), Ok(true));
    let read = JsonReader::new(documents).array(|reader| {
        is_text &= read_item(reader, true)?;
        Ok(())
    });
    let inputs = count_inputs(documents);
    InputSummary {
        repeated_bytes: longest(query).saturating_mul(inputs - 1),
        has_unseen: read.is_err() || !is_text,
        inputs,
        ..InputSummary::default()
    }
}

/// Summarizes the input of a moderation, in which a bare string is text whatever it looks like.
pub(super) fn moderation_input(body: &[u8]) -> InputSummary {
    let Ok([input]) = decode_unique_fields(body, [&["input"]]) else {
        return InputSummary::unreadable();
    };
    let input = input.value().map(RawJson::get).unwrap_or_default();
    let (mut reader, mut is_text) = (JsonReader::new(input), true);
    let read = match reader.peek() {
        Some(b'[') => reader.array(|reader| {
            is_text &= read_item(reader, false)?;
            Ok(())
        }),
        _ => read_item(&mut reader, false).map(|is_item| is_text = is_item),
    };
    InputSummary {
        has_unseen: read.is_err() || !is_text,
        inputs: count_inputs(input),
        ..InputSummary::default()
    }
}

/// Reads one input, and tells whether it is text that stands in the body. `may_link`: a bare string may lead to something else.
fn read_item(reader: &mut JsonReader<'_>, may_link: bool) -> DecodeResult<bool> {
    if reader.peek() == Some(b'"') {
        let text = reader.text()?;
        return Ok(!(may_link && is_link(&text)));
    }
    if reader.peek() != Some(b'{') {
        reader.skip()?;
        return Ok(false);
    }
    let (mut is_plain, mut has_text, mut has_link) = (true, false, false);
    reader.object(|reader, key| {
        let name = key.to_ascii_lowercase();
        is_plain &= !MEDIA_WORDS.iter().any(|word| name.contains(word));
        match reader.peek() {
            Some(b'"') => {
                let text = reader.text()?;
                has_link |= is_link(&text);
                has_text |= key == "text";
                return Ok(());
            }
            Some(b'{' | b'[') => is_plain = false,
            _ => {}
        }
        reader.skip()
    })?;
    // Beside its text, a document may say where it is from.
    Ok(is_plain && (has_text || !has_link))
}

/// Tells whether a text may be the address of something, or hold it as data.
fn is_link(text: &str) -> bool {
    let is_one_word = !text.contains(|letter: char| letter.is_ascii_whitespace());
    is_one_word && (text.contains("://") || text.starts_with("data:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_counts_with_every_document() {
        let body = br#"{"model":"m","query":"abcd","documents":["a",{"text":"b"},"c"]}"#;
        let summary = rerank_input(body);
        assert_eq!((summary.repeated_bytes, summary.has_unseen), (12, false));
        assert_eq!(summary.inputs, 3);
        let body = r#"{"model":"m","query":"ﷺ","documents":["a","b","c"]}"#;
        assert_eq!(rerank_input(body.as_bytes()).repeated_bytes, 2 * (5 + 30));
    }

    #[test]
    fn input_that_stands_there_twice_is_not_read() {
        use crate::formats::PassthroughEndpoint;
        for (endpoint, body) in [
            (
                PassthroughEndpoint::Rerank,
                r#"{"model":"m","query":"q","documents":["a"],"Documents":["b"]}"#,
            ),
            (
                PassthroughEndpoint::Rerank,
                r#"{"model":"m","query":"q","query":"r","documents":["a"]}"#,
            ),
            (
                PassthroughEndpoint::Moderations,
                r#"{"model":"m","input":"a","Input":["b"]}"#,
            ),
        ] {
            let fields = endpoint.decode_routing_fields(body.as_bytes());
            assert!(fields.is_err(), "{body}");
            let summary = endpoint.summarize_input(body.as_bytes());
            assert!(summary.has_unseen, "{body}");
        }
    }

    #[test]
    fn what_a_ranking_links_to_is_not_seen() {
        let page = r#"{"text":"a","url":"https://a.example/x","page":2}"#;
        for (query, documents, inputs, has_unseen) in [
            (r#""q""#, r#"["a","see https://a.example"]"#, 2, false),
            (r#""q""#, &format!("[{page}]"), 1, false),
            (r#""q""#, r#"[{"title":"a","snippet":"b"}]"#, 1, false),
            (r#""q""#, r#"["https://a.example/x.png"]"#, 1, true),
            (
                r#""q""#,
                r#"["a",{"image":"https://a.example/x.png"}]"#,
                2,
                true,
            ),
            (r#""q""#, r#"[{"image":"AAAA"},{"image":"AAAA"}]"#, 2, true),
            (r#""q""#, r#"[{"source":"s3://a/x.png"}]"#, 1, true),
            (r#""q""#, r#"[{"text":"a","image_url":"x"}]"#, 1, true),
            (r#""q""#, r#"[{"content":[{"type":"text"}]}]"#, 1, true),
            (r#""q""#, r#"[["a","b"]]"#, 2, true),
            (r#""q""#, r#"[{"content":["a","b"]}]"#, 2, true),
            (r#""q""#, r#"["data:image/png;base64,AAAA"]"#, 1, true),
            (r#"{"image":"AAAA"}"#, r#"["a"]"#, 1, true),
            (r#""q""#, r#""file""#, 1, true),
            (r#""q""#, r#"{"a":["b","c"]}"#, 2, true),
            (r#""q""#, r#"[1]"#, 1, true),
        ] {
            let body = format!(r#"{{"model":"m","query":{query},"documents":{documents}}}"#);
            let summary = rerank_input(body.as_bytes());
            let found = (summary.inputs, summary.has_unseen);
            assert_eq!(found, (inputs, has_unseen), "{body}");
        }
    }

    #[test]
    fn what_a_moderation_links_to_is_not_seen() {
        for (input, inputs, has_unseen) in [
            (r#""https://a.example/x.png""#, 1, false),
            (r#"["a","https://a.example/x.png"]"#, 2, false),
            (r#"[{"type":"text","text":"a"}]"#, 1, false),
            (
                r#"[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"x"}}]"#,
                2,
                true,
            ),
            (r#"{"type":"image_url","image_url":{"url":"x"}}"#, 2, true),
            ("7", 1, true),
        ] {
            let body = format!(r#"{{"model":"m","input":{input}}}"#);
            let summary = moderation_input(body.as_bytes());
            let found = (summary.inputs, summary.has_unseen);
            assert_eq!(found, (inputs, has_unseen), "{body}");
        }
    }
}
