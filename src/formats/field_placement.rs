//! Fields that some upstreams take in the path or a header instead of the body, or the other way round.

use std::collections::HashSet;

use http::HeaderName;

use super::body::{decode_unique_fields, set_field};
use super::json_bytes::to_json_string;
use crate::json::{Edit, RawJson, remove_members};
use crate::model::ApiError;

/// Where the fields of a request stand at an upstream that differs from its format.
#[derive(Debug, Clone, Default)]
pub struct FieldPlacement {
    /// The path has the model.
    pub without_model: bool,
    /// The path says whether a stream is asked for.
    pub without_stream: bool,
    /// The version, where it stands in the body.
    pub version: Option<String>,
    /// The betas, where they stand in the body.
    pub betas: Vec<String>,
}

/// The names of the version of a format and of its betas, which most upstreams take in headers and some in the body.
#[derive(Debug, Clone)]
pub struct VersionFields {
    pub version_header: HeaderName,
    pub betas_header: HeaderName,
    pub version: &'static str,
    pub betas: &'static str,
}

/// Returns the edits, in order, that put fields of a JSON body where an upstream takes them. A body that is no object stays
/// as it is.
pub fn place_fields(
    body: &[u8],
    placement: &FieldPlacement,
    names: Option<&VersionFields>,
) -> Result<Vec<Edit>, ApiError> {
    let (version, betas) = names.map_or(("", ""), |names| (names.version, names.betas));
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Ok(Vec::new());
    }
    let spellings: [&[&'static str]; 4] = [&["model"], &["stream"], &[version], &[betas]];
    // Each name is looked for as the format spells it.
    let [model, stream, own_version, own_betas] = decode_unique_fields(body, spellings)?;
    let mut edits = Vec::new();
    if !placement.betas.is_empty() {
        let written = own_betas.value().map(RawJson::get).unwrap_or("[]");
        let mut all: Vec<String> =
            serde_json::from_str(written).map_err(|_| own_betas.wrong("an array of strings"))?;
        let own: HashSet<&str> = all.iter().map(String::as_str).collect();
        let further = placement.betas.iter();
        let further = further.filter(|beta| !own.contains(beta.as_str()));
        let further: Vec<String> = further.cloned().collect();
        all.extend(further);
        let all = serde_json::to_string(&all).unwrap_or_default();
        edits.push(set_field(body, &own_betas, &all));
    }
    if let Some(version) = &placement.version {
        let version = to_json_string(version);
        let version = String::from_utf8_lossy(&version);
        edits.push(set_field(body, &own_version, &version));
    }
    let mut removed = Vec::new();
    for (field, is_elsewhere) in [
        (&model, placement.without_model),
        (&stream, placement.without_stream),
    ] {
        let written = field.written().filter(|_| is_elsewhere);
        removed.extend(written.map(|value| value.range_in(body)));
    }
    removed.sort_by_key(|range| range.start);
    edits.extend(remove_members(body, &removed));
    edits.sort_by_key(|edit| edit.range.start);
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::json::replace;
    use crate::model::Format;

    fn placed(body: &str, placement: &FieldPlacement) -> String {
        let names = Format::Messages.codec().version_fields();
        let edits = place_fields(body.as_bytes(), placement, names.as_ref()).expect("edits");
        let bytes = replace(body.as_bytes(), &edits);
        String::from_utf8(bytes.to_vec()).expect("text")
    }

    #[test]
    fn fields_leave_the_body_wherever_they_stand() {
        let placement = FieldPlacement {
            without_model: true,
            without_stream: true,
            version: Some("v1".to_owned()),
            betas: vec!["b".to_owned(), "c".to_owned()],
        };
        let members = [
            r#""model" : "m""#,
            r#""stream":true"#,
            r#""messages":[{"model":1}]"#,
            r#""max_tokens": 1"#,
        ];
        // Every order of four members.
        for order in 0..256_usize {
            let order = [order & 3, order >> 2 & 3, order >> 4 & 3, order >> 6 & 3];
            if (0..4).any(|member| !order.contains(&member)) {
                continue;
            }
            let body = format!("{{ {} }}", order.map(|at| members[at]).join(" ,\n"));
            let after: Value = serde_json::from_str(&placed(&body, &placement)).expect(&body);
            let expected = json!({
                "anthropic_version": "v1", "anthropic_beta": ["b", "c"],
                "messages": [{"model": 1}], "max_tokens": 1,
            });
            assert_eq!(after, expected, "{body}");
        }
    }

    #[test]
    fn what_the_client_wrote_is_replaced_or_kept() {
        let placement = FieldPlacement {
            version: Some("v1".to_owned()),
            betas: vec!["b".to_owned()],
            ..FieldPlacement::default()
        };
        let body = r#"{"anthropic_beta":["a","b"],"anthropic_version":"x","model":"m"}"#;
        let expected = r#"{"anthropic_beta":["a","b"],"anthropic_version":"v1","model":"m"}"#;
        assert_eq!(placed(body, &placement), expected);
        let untouched = FieldPlacement::default();
        assert_eq!(placed(body, &untouched), body);
        assert_eq!(placed("--form", &placement), "--form");
    }
}
