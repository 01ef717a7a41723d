//! What clients of a format lose on a model: small requests, each with one more feature of the format, are translated as the
//! gateway would translate them.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::console::views::ClientLossesView;
use crate::formats::Capabilities;
use crate::model::{Action, Format, Losses};
use crate::translate::{BodyKind, StandaloneTranslation};

const PROBES: [(&str, &str); 5] = [
    ("chat", include_str!("probes/chat.json")),
    ("responses", include_str!("probes/responses.json")),
    ("messages", include_str!("probes/messages.json")),
    ("native", include_str!("probes/native.json")),
    ("images", include_str!("probes/images.json")),
];

/// The member of a probe with its name, for features whose path does not tell what they are.
const LABEL: &str = "$label";

/// The requests of a format.
#[derive(Deserialize)]
struct Probes {
    base: Map<String, Value>,
    /// The members that each has beside those of the base, or in their place.
    probes: Vec<Map<String, Value>>,
}

impl Probes {
    fn of(format: Format) -> Option<Probes> {
        let mut known = PROBES.iter();
        let (_, text) = known.find(|(name, _)| *name == format.name())?;
        serde_json::from_str(text).ok()
    }

    /// The body of each, with what it is called where it is refused.
    fn bodies(self) -> impl Iterator<Item = (Option<String>, Vec<u8>)> {
        let base = self.base;
        self.probes.into_iter().map(move |mut probe| {
            let label = probe.remove(LABEL);
            let label = label.as_ref().and_then(Value::as_str).map(str::to_owned);
            let mut body = base.clone();
            body.extend(probe);
            (label, Value::Object(body).to_string().into_bytes())
        })
    }
}

/// Tries what a client of a format may ask for on the model of an upstream.
pub fn client_losses(
    client: Format,
    upstream: Format,
    capabilities: &Capabilities,
    max_output_tokens: Option<u64>,
) -> ClientLossesView {
    let translation = StandaloneTranslation {
        from: client,
        to: upstream,
        kind: BodyKind::Request,
        model: Some("m"),
        stream: false,
        include_usage: true,
        max_output_tokens,
        capabilities,
        request_id: "",
        created_at: 0,
    };
    let mut view = ClientLossesView {
        client: client.name(),
        upstream: upstream.name(),
        passes_through: client == upstream,
        dropped: Vec::new(),
        adjusted: Vec::new(),
        refused: Vec::new(),
    };
    let probes = Probes::of(client).map(Probes::bodies);
    for (label, body) in probes.into_iter().flatten() {
        let mut losses = Losses::default();
        let outcome = match view.passes_through {
            true => translation.pass_through(&body, &mut losses),
            false => translation.translate(&body, &mut losses),
        };
        if let Err(api_error) = outcome {
            let path = label.or_else(|| api_error.param.clone());
            note(&mut view.refused, path.as_deref().unwrap_or("model"));
            continue;
        }
        for loss in &losses.0 {
            let path = client.codec().path_of(&loss.location);
            match loss.action {
                Action::Dropped => note(&mut view.dropped, &path),
                Action::Approximated => note(&mut view.adjusted, &path),
                Action::Added => {}
            }
        }
    }
    view
}

/// Adds a path once, without the numbers of its items.
fn note(paths: &mut Vec<String>, path: &str) {
    let mut plain = String::with_capacity(path.len());
    let mut in_index = false;
    for letter in path.chars() {
        in_index &= letter != ']';
        if !in_index {
            plain.push(letter);
        }
        in_index |= letter == '[';
    }
    if !paths.contains(&plain) {
        paths.push(plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_probe_is_a_good_request_of_its_format() {
        for format in Format::EVERY {
            let capabilities = Capabilities::default();
            let view = client_losses(format, format, &capabilities, None);
            assert!(view.passes_through);
            assert_eq!(view.refused, Vec::<String>::new(), "{format:?}");
            assert_eq!(view.dropped, Vec::<String>::new(), "{format:?}");
            let probes = Probes::of(format).expect("probes");
            assert!(probes.bodies().count() > 5);
        }
    }

    #[test]
    fn losses_are_those_of_the_translation() {
        let mut capabilities = Capabilities::default();
        let view = client_losses(Format::Chat, Format::Messages, &capabilities, None);
        for path in ["seed", "logprobs", "presence_penalty", "n"] {
            assert!(
                view.dropped.iter().any(|dropped| dropped == path),
                "{path}: {view:?}"
            );
        }
        assert!(
            !view.dropped.iter().any(|path| path.contains("tools")),
            "{view:?}"
        );
        let detail = "messages[].content[].image_url.detail".to_owned();
        assert!(view.dropped.contains(&detail), "{view:?}");
        // A capability changes what is lost.
        let before = client_losses(Format::Messages, Format::Chat, &capabilities, None);
        assert!(
            !before.dropped.contains(&"temperature".to_owned()),
            "{before:?}"
        );
        capabilities.set("sampling", "false").expect("a capability");
        let after = client_losses(Format::Messages, Format::Chat, &capabilities, None);
        assert!(
            after.dropped.contains(&"temperature".to_owned()),
            "{after:?}"
        );
        // So it does where nothing is translated.
        capabilities
            .set("chat_unsupported", "seed")
            .expect("a capability");
        let own = client_losses(Format::Chat, Format::Chat, &capabilities, None);
        assert_eq!(own.dropped, ["seed"]);
    }
}
