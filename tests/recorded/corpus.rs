//! The recordings of the corpus, and the metadata of each.

use std::path::PathBuf;

use omniglot::formats::{Framing, ResponseOptions};
use omniglot::model::Format;
use serde_json::Value;

/// One recorded exchange; any of its files may be missing.
pub struct Recording {
    /// `format/case`, for messages.
    pub name: String,
    pub format: Format,
    pub model: String,
    pub status: u16,
    /// The path of the recorded request asked for a stream.
    pub path_streams: bool,
    pub request: Option<Vec<u8>>,
    pub response: Option<Vec<u8>>,
    pub stream: Option<Vec<u8>>,
}

pub fn root() -> Option<PathBuf> {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/corpus");
    let root = std::env::var_os("OMNIGLOT_CORPUS").map_or_else(|| beside.into(), PathBuf::from);
    if !root.is_dir() {
        eprintln!("no recordings in {}: nothing to check", root.display());
        return None;
    }
    Some(root)
}

/// All recordings; none where there is no corpus.
pub fn recordings() -> Vec<Recording> {
    let Some(root) = root() else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for side in ["open", "held"] {
        let folder = root.join(side);
        if !folder.is_dir() {
            continue;
        }
        let index = std::fs::read(folder.join("index.json")).expect("an index");
        let index: Vec<Value> = serde_json::from_slice(&index).expect("an index in JSON");
        all.extend(index.iter().map(|entry| recording(&folder, entry)));
    }
    assert!(!all.is_empty(), "a corpus without recordings");
    all
}

fn recording(folder: &std::path::Path, entry: &Value) -> Recording {
    let text = |key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let (case, format) = (text("case"), text("format"));
    let path = |ending: &str| folder.join(&format).join(format!("{case}.{ending}"));
    let file = |ending: &str| std::fs::read(path(ending)).ok();
    Recording {
        name: format!("{format}/{case}"),
        format: Format::from_name(&format).expect("a known format"),
        model: text("model"),
        status: entry["status"]
            .as_u64()
            .and_then(|status| status.try_into().ok())
            .expect("a status"),
        path_streams: text("url").contains(":streamGenerateContent"),
        request: file("request.json"),
        response: file("response.json"),
        stream: file("sse"),
    }
}

pub fn response_options(model: &str, stream: bool) -> ResponseOptions {
    ResponseOptions {
        model: model.to_owned(),
        stream,
        framing: Framing::Sse,
        include_usage: true,
        request_id: "req_1".to_owned(),
        created_at: 1_760_000_000,
        translation_state: omniglot::model::TranslationState::default(),
    }
}

pub fn others(format: Format) -> impl Iterator<Item = Format> {
    Format::ALL
        .into_iter()
        .filter(move |other| *other != format)
}
