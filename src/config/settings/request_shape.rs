//! How requests to an upstream differ from those of its format: paths, query, and where some fields stand.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use crate::formats::{CloudEmbeddings, Operation, PassthroughEndpoint};
use crate::model::Format;

/// All that could end a segment of a path, or mean something in it. The `@` of model versions cannot.
const SEGMENT_ESCAPES: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'@');

/// Where requests to an upstream differ from those of its format. The default: nowhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestShape {
    /// The paths of a format, where they are not those of the format.
    pub paths: Vec<(Format, UpstreamPaths)>,
    /// Parameters that every request has, encoded: `a=1&b=2`.
    pub query: String,
    /// The model is in the path, and only there.
    pub model_in_path: bool,
    /// Whether a stream is asked for is in the path, and only there.
    pub stream_in_path: bool,
    /// The version stands in the body and not in a header; this is what the upstream calls the first one.
    pub version_in_body: Option<String>,
    /// The betas stand in the body and not in a header.
    pub betas_in_body: bool,
    pub framing: StreamFraming,
    /// Embeddings are asked for in a cloud's own words.
    pub embeddings: Option<CloudEmbeddings>,
}

impl RequestShape {
    pub fn paths_of(&self, format: Format) -> Option<&UpstreamPaths> {
        let mut paths = self.paths.iter();
        paths.find(|(of, _)| *of == format).map(|(_, paths)| paths)
    }

    /// Whether fields are moved in or out of the body.
    pub const fn changes_body(&self) -> bool {
        self.model_in_path
            || self.stream_in_path
            || self.version_in_body.is_some()
            || self.betas_in_body
    }
}

/// How the events of a stream are framed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StreamFraming {
    #[default]
    Sse,
    /// The binary event stream of AWS.
    AwsEventStream,
}

/// The paths of the operations of one format, below the base URL.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpstreamPaths {
    pub generate: Option<PathTemplate>,
    /// Absent: that of `generate`.
    pub stream: Option<PathTemplate>,
    /// Absent where `generate` is set: the upstream counts no tokens.
    pub count: Option<PathTemplate>,
    /// Images made from images.
    pub edit: Option<PathTemplate>,
    pub embed: Option<PathTemplate>,
    /// Those of endpoints that pass through.
    pub endpoints: Vec<(PassthroughEndpoint, PathTemplate)>,
}

impl UpstreamPaths {
    /// The path of an operation; `None`: that of the format.
    pub fn of(&self, operation: Operation, stream: bool) -> Option<&PathTemplate> {
        match operation {
            Operation::CountTokens => self.count.as_ref(),
            Operation::Edit => self.edit.as_ref(),
            Operation::Embed(_) => self.embed.as_ref(),
            Operation::Passthrough(endpoint) => {
                let mut endpoints = self.endpoints.iter();
                endpoints.find(|(of, _)| *of == endpoint).map(|(_, it)| it)
            }
            Operation::Generate | Operation::Stream(_) if stream => {
                self.stream.as_ref().or(self.generate.as_ref())
            }
            Operation::Generate | Operation::Stream(_) => self.generate.as_ref(),
        }
    }

    /// Whether it is known that the upstream has no endpoint for an operation beside conversations and images.
    pub fn lacks(&self, operation: Operation) -> bool {
        let is_beside = matches!(operation, Operation::Embed(_) | Operation::Passthrough(_));
        is_beside && self.generate.is_some() && self.of(operation, false).is_none()
    }

    /// Whether it is known that the upstream counts no tokens.
    pub const fn has_no_counter(&self) -> bool {
        self.generate.is_some() && self.count.is_none()
    }
}

/// A path with room for the name of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathTemplate {
    /// The text between the places of the model: one more than there are places.
    literals: Vec<String>,
}

impl PathTemplate {
    /// Parses a template. `value` has the other placeholders; an error is what is wrong with one.
    pub fn parse(
        text: &str,
        value: impl Fn(&str) -> Result<String, String>,
    ) -> Result<PathTemplate, String> {
        let (mut literals, mut literal, mut rest) = (Vec::new(), String::new(), text);
        while let Some((before, from)) = rest.split_once('{') {
            literal.push_str(before);
            let (name, after) = from
                .split_once('}')
                .ok_or_else(|| "has a { without a }".to_owned())?;
            match name {
                "model" | "deployment" => literals.push(std::mem::take(&mut literal)),
                name => literal.push_str(&encode_segment(&value(name)?)),
            }
            rest = after;
        }
        literal.push_str(rest);
        literals.push(literal);
        Ok(PathTemplate { literals })
    }

    pub fn has_model(&self) -> bool {
        self.literals.len() > 1
    }

    /// The path with this model, whose name stays within its segment. `None`: it cannot, since `.` and `..` are segments
    /// with a meaning of their own, however they are encoded.
    pub fn fill(&self, model: &str) -> Option<String> {
        let path = self.literals.join(&encode_segment(model));
        let is_dots = |segment: &str| matches!(segment, "." | "..");
        (!path.split('/').any(is_dots)).then_some(path)
    }
}

/// A text as one segment of a path.
fn encode_segment(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT_ESCAPES).to_string()
}

/// A parameter of a query.
pub fn encode_parameter(name: &str, value: &str) -> String {
    format!("{}={}", encode_segment(name), encode_segment(value))
}

#[cfg(test)]
mod tests {
    use percent_encoding::percent_decode_str;
    use proptest::prelude::*;

    use super::*;

    fn template(text: &str) -> PathTemplate {
        PathTemplate::parse(text, |name| Err(format!("unknown {name}"))).expect("a template")
    }

    #[test]
    fn values_are_put_in_once_and_models_later() {
        let value = |name: &str| match name {
            "project" => Ok("a/b".to_owned()),
            name => Err(format!("unknown {name}")),
        };
        let parsed = PathTemplate::parse("/p/{project}/m/{model}:go", value).expect("a template");
        assert_eq!(
            parsed.fill("claude@2025").as_deref(),
            Some("/p/a%2Fb/m/claude@2025:go")
        );
        assert!(parsed.has_model());
        let plain = PathTemplate::parse("/p/{project}", value).expect("a template");
        assert!(!plain.has_model());
        assert_eq!(plain.fill("m").as_deref(), Some("/p/a%2Fb"));
        for (text, expected) in [
            ("/{region}", "unknown region"),
            ("/{model", "has a { without a }"),
        ] {
            assert_eq!(PathTemplate::parse(text, value), Err(expected.to_owned()));
        }
    }

    #[test]
    fn dots_are_no_segment_of_their_own() {
        let whole = template("/deployments/{deployment}/chat");
        assert_eq!(whole.fill(".."), None);
        assert_eq!(whole.fill("."), None);
        assert_eq!(whole.fill("..a").as_deref(), Some("/deployments/..a/chat"));
        let part = template("/models/{model}:go");
        assert_eq!(part.fill("..").as_deref(), Some("/models/..:go"));
    }

    proptest! {
        #[test]
        fn a_model_stays_one_segment(model in "[a-z/:@%; .?#\\\\&+=éß漢😀\u{0}\n]{1,24}") {
            let filled = template("/a/{model}/b").fill(&model);
            prop_assert_eq!(filled.is_none(), matches!(&*model, "." | ".."));
            if let Some(path) = filled {
                let segments: Vec<&str> = path.split('/').collect();
                prop_assert_eq!(segments.len(), 4);
                let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@%/".contains(&byte);
                prop_assert!(path.bytes().all(is_plain), "{}", path);
                let decoded = percent_decode_str(segments[2]).decode_utf8().expect("text");
                prop_assert_eq!(decoded, model);
            }
        }
    }
}
