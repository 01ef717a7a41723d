//! The lists of models that upstreams have, page by page.

use serde::Deserialize;

use crate::model::Format;

/// The names of a page, and what the next page is asked for with.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ModelPage {
    pub names: Vec<String>,
    /// Absent: this is the last page.
    pub next: Option<String>,
}

/// What precedes the names of native models.
const NATIVE_PREFIX: &str = "models/";

#[derive(Deserialize)]
struct DataPage {
    data: Vec<DataModel>,
    #[serde(default)]
    has_more: bool,
    #[serde(default)]
    last_id: Option<String>,
}

#[derive(Deserialize)]
struct DataModel {
    id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NativePage {
    #[serde(default)]
    models: Vec<NativeModel>,
    #[serde(default)]
    next_page_token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct NativeModel {
    name: String,
    /// Absent: unknown.
    supported_generation_methods: Option<Vec<String>>,
}

impl Format {
    /// Returns the path of a page of the list below the upstream's base URL.
    pub fn model_list_path(self, next: Option<&str>) -> String {
        let encode = |token: &str| -> String {
            url::form_urlencoded::byte_serialize(token.as_bytes()).collect()
        };
        let (mut path, parameter) = match self {
            Format::Messages => ("/v1/models?limit=1000".to_owned(), "&after_id="),
            Format::Native => ("/v1beta/models?pageSize=1000".to_owned(), "&pageToken="),
            _ => ("/models".to_owned(), "?after="),
        };
        if let Some(token) = next {
            path += parameter;
            path += &encode(token);
        }
        path
    }

    /// Returns the headers that the list needs.
    pub const fn model_list_header(self) -> Option<(&'static str, &'static str)> {
        match self {
            Format::Messages => Some(("anthropic-version", "2023-06-01")),
            _ => None,
        }
    }

    /// Decodes a page of the list; `None`: it is none.
    pub fn decode_model_list(self, body: &[u8]) -> Option<ModelPage> {
        if self == Format::Native {
            let page: NativePage = serde_json::from_slice(body).ok()?;
            let generates = |model: &NativeModel| {
                let methods = model.supported_generation_methods.as_ref();
                methods.is_none_or(|methods| methods.iter().any(|name| name == "generateContent"))
            };
            let models = page.models.into_iter().filter(generates);
            let names = models.map(|model| match model.name.strip_prefix(NATIVE_PREFIX) {
                Some(name) => name.to_owned(),
                None => model.name,
            });
            return Some(ModelPage {
                names: names.collect(),
                next: page.next_page_token.filter(|token| !token.is_empty()),
            });
        }
        let page: DataPage = serde_json::from_slice(body).ok()?;
        // Lists of chat have one page as a rule; some servers say so with these fields.
        let next = page.last_id.filter(|_| page.has_more);
        Some(ModelPage {
            names: page.data.into_iter().map(|model| model.id).collect(),
            next,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(format: Format, body: &str) -> Option<(Vec<String>, Option<String>)> {
        let page = format.decode_model_list(body.as_bytes())?;
        Some((page.names, page.next))
    }

    #[test]
    fn the_pages_of_every_format_are_decoded() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        for format in [
            Format::Chat,
            Format::Responses,
            Format::Images,
            Format::Messages,
        ] {
            let body = r#"{"object":"list","data":[{"id":"a","object":"model"},{"id":"b"}]}"#;
            assert_eq!(page(format, body), Some((names(&["a", "b"]), None)));
            let body = r#"{"data":[{"id":"a"}],"has_more":true,"first_id":"a","last_id":"a"}"#;
            assert_eq!(
                page(format, body),
                Some((names(&["a"]), Some("a".to_owned())))
            );
            let body = r#"{"data":[],"has_more":false,"last_id":null}"#;
            assert_eq!(page(format, body), Some((names(&[]), None)));
            assert_eq!(page(format, r#"{"error":"no"}"#), None);
        }
        let body = r#"{"models":[{"name":"models/a","supportedGenerationMethods":["generateContent"]},
            {"name":"models/embedding","supportedGenerationMethods":["embedContent"]},{"name":"b"}],
            "nextPageToken":"t"}"#;
        let expected = (names(&["a", "b"]), Some("t".to_owned()));
        assert_eq!(page(Format::Native, body), Some(expected));
        assert_eq!(page(Format::Native, "{}"), Some((Vec::new(), None)));
        assert_eq!(page(Format::Native, "[]x"), None);
    }

    #[test]
    fn the_next_page_is_asked_for_with_its_token() {
        let path = |format: Format| format.model_list_path(Some("a b&c"));
        assert_eq!(Format::Chat.model_list_path(None), "/models");
        assert_eq!(path(Format::Chat), "/models?after=a+b%26c");
        assert_eq!(
            path(Format::Messages),
            "/v1/models?limit=1000&after_id=a+b%26c"
        );
        assert_eq!(
            path(Format::Native),
            "/v1beta/models?pageSize=1000&pageToken=a+b%26c"
        );
    }
}
