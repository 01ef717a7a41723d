//! Translates a body, and compares what came out with what went in.

use super::known_values::KnownValues;
use super::marked_json::{JsonLayout, write_marked};
use super::marked_paths::MarkedPaths;
use crate::console::views::{LossView, Mark, MarkedText, TranslationRefusal, TranslationView};
use crate::model::{Action, FieldLocation, Loss, Losses};
use crate::sse::SseFrames;
use crate::translate::{BodyKind, StandaloneTranslation};

/// Translates a body. What is marked are the places that the translation reports, and in the output also the values that the
/// input does not have.
/// `None`: the output is longer than `most`, which is known before it is laid out.
pub fn explore(
    translation: &StandaloneTranslation<'_>,
    input: &str,
    most: usize,
) -> Option<TranslationView> {
    let mut losses = Losses::default();
    let passes_through = translation.from == translation.to;
    let outcome = match passes_through {
        true => translation.pass_through(input.as_bytes(), &mut losses),
        false => translation.translate(input.as_bytes(), &mut losses),
    };
    let codec = translation.client().codec();
    let (output, refusal) = match outcome {
        Ok(output) => (output, None),
        Err(api_error) => {
            let (status, body) = codec.encode_error(&api_error, translation.request_id);
            let refusal = TranslationRefusal {
                status,
                message: api_error.message.clone(),
                path: api_error.param.clone(),
            };
            (body, Some(refusal))
        }
    };
    if output.len() > most {
        return None;
    }
    let output = String::from_utf8_lossy(&output).into_owned();
    let sides = Sides::new(translation, input, &output, &losses, refusal.as_ref());
    Some(TranslationView {
        from: translation.from.name(),
        to: translation.to.name(),
        passes_through,
        refused: refusal,
        losses: sides.losses,
        input_text: sides.input,
        output_text: sides.output,
        output,
    })
}

/// Both sides with their marks.
struct Sides {
    input: MarkedText,
    output: MarkedText,
    losses: Vec<LossView>,
}

impl Sides {
    fn new(
        translation: &StandaloneTranslation<'_>,
        input: &str,
        output: &str,
        losses: &Losses,
        refusal: Option<&TranslationRefusal>,
    ) -> Sides {
        let is_stream = translation.kind == BodyKind::Stream;
        let mut paths = MarkedPaths::default();
        let codec = translation.from.codec();
        let reported = losses.0.iter().map(|loss| {
            let path = codec.path_of(&loss.location);
            let number = paths.add(&path, mark_of(loss.action));
            (loss, path, number)
        });
        let reported: Vec<(&Loss, String, usize)> = reported.collect();
        if let Some(path) = refusal.and_then(|refusal| refusal.path.as_deref()) {
            paths.add(path, Mark::Refused);
        }
        let marked_input = marked(input, is_stream, &mut paths, None);

        let mut output_paths = MarkedPaths::default();
        let losses = reported.into_iter().map(|(loss, path, number)| {
            let is_in_input = paths.is_found(number);
            let output_path = output_path(translation, loss, &path, is_in_input);
            let output_number = output_path
                .as_deref()
                .map(|path| output_paths.add(path, mark_of(loss.action)));
            let view = LossView {
                action: loss.action.word(),
                path,
                is_in_input,
                output_path,
            };
            (view, output_number)
        });
        let losses: Vec<(LossView, Option<usize>)> = losses.collect();
        // An error is no translation of anything.
        let known = refusal.is_none().then(|| known_values(input, is_stream));
        let is_stream = is_stream && refusal.is_none();
        let output = marked(output, is_stream, &mut output_paths, known.as_ref());
        let losses = losses.into_iter().map(|(mut loss, number)| {
            let is_found = number.is_some_and(|number| output_paths.is_found(number));
            loss.output_path = loss.output_path.filter(|_| is_found);
            loss
        });
        Sides {
            input: marked_input,
            losses: losses.collect(),
            output,
        }
    }
}

const fn mark_of(action: Action) -> Mark {
    match action {
        Action::Dropped => Mark::Dropped,
        Action::Approximated => Mark::Adjusted,
        Action::Added => Mark::Added,
    }
}

/// Where the output may have what was lost. Of a request that is known for settings and tools, which every format has a path
/// for; the turns of two formats need not have the same numbers. Of a response the translation names fields of either side.
fn output_path(
    translation: &StandaloneTranslation<'_>,
    loss: &Loss,
    path: &str,
    is_in_input: bool,
) -> Option<String> {
    let is_kept = loss.action != Action::Dropped;
    if translation.kind != BodyKind::Request {
        return (is_kept || !is_in_input).then(|| path.to_owned());
    }
    let has_own_path = matches!(
        loss.location,
        FieldLocation::Setting(_) | FieldLocation::Tool { .. } | FieldLocation::ToolStrict { .. }
    );
    let codec = translation.to.codec();
    (is_kept && has_own_path).then(|| codec.path_of(&loss.location))
}

fn known_values(input: &str, is_stream: bool) -> KnownValues {
    let mut known = KnownValues::default();
    match is_stream {
        true => each_event(input, |_, data| known.add(data)),
        false => known.add(input),
    }
    known
}

/// Lays out a body: a document over many lines, each event of a stream on one.
fn marked(
    text: &str,
    is_stream: bool,
    paths: &mut MarkedPaths,
    known: Option<&KnownValues>,
) -> MarkedText {
    let mut out = MarkedText::default();
    if !is_stream {
        let is_json = write_marked(text, JsonLayout::Lines, paths, known, &mut out);
        return if is_json {
            out
        } else {
            MarkedText::plain(text)
        };
    }
    each_event(text, |name, data| {
        if !name.is_empty() {
            out.write("event: ".to_owned(), None, true);
            out.write(name.to_owned(), None, false);
            out.end_line();
        }
        out.write("data: ".to_owned(), None, true);
        if !write_marked(data, JsonLayout::OneLine, paths, known, &mut out) {
            out.write(data.to_owned(), None, false);
        }
        out.end_line();
    });
    out.finish();
    match out.lines.is_empty() {
        true => MarkedText::plain(text),
        false => out,
    }
}

/// Hands over the name and the payload of each event that has one.
fn each_event(stream: &str, mut each: impl FnMut(&str, &str)) {
    let mut frames = SseFrames::default();
    let mut hand_over = |frame: crate::sse::SseFrame<'_>| {
        if let Some(data) = &frame.data {
            each(&frame.name, data);
        }
    };
    frames.push(stream.as_bytes(), &mut hand_over);
    frames.finish(&mut hand_over);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::console::explorer::{is_sample, sample};
    use crate::formats::Capabilities;
    use crate::model::Format;

    fn explored(from: Format, to: Format, kind: BodyKind, input: &str) -> TranslationView {
        let translation = StandaloneTranslation {
            from,
            to,
            kind,
            model: (from == Format::Native).then_some("acme-large"),
            stream: false,
            include_usage: false,
            max_output_tokens: None,
            capabilities: &Capabilities::default(),
            request_id: "req_1",
            created_at: 1,
        };
        explore(&translation, input, usize::MAX).expect("a short output")
    }

    fn paths<'v>(view: &'v TranslationView, action: &str) -> Vec<&'v str> {
        let losses = view.of_action(action).into_iter();
        losses.map(|loss| loss.path.as_str()).collect()
    }

    #[test]
    fn places_are_marked_on_both_sides() {
        let input = r#"{"model":"m","seed":7,"temperature":1.5,"messages":[{"role":"user","content":"Hi"}]}"#;
        let view = explored(Format::Chat, Format::Native, BodyKind::Request, input);
        assert!(view.losses.is_empty() && view.refused.is_none());
        let mut capabilities = Capabilities::default();
        capabilities
            .set("messages_version", "2023-06-01")
            .expect("a capability");
        let translation = StandaloneTranslation {
            from: Format::Chat,
            to: Format::Messages,
            kind: BodyKind::Request,
            model: None,
            stream: false,
            include_usage: false,
            max_output_tokens: None,
            capabilities: &capabilities,
            request_id: "req_1",
            created_at: 1,
        };
        let view = explore(&translation, input, usize::MAX).expect("a short output");
        assert_eq!(paths(&view, "dropped"), ["seed"]);
        assert_eq!(paths(&view, "adjusted"), ["temperature"]);
        let input = view.input_text.text();
        assert!(input.contains("<dropped \"seed\"><dropped : 7>"), "{input}");
        assert!(input.contains("<adjusted \"temperature\">"), "{input}");
        let output = view.output_text.text();
        assert!(
            output.contains("<adjusted \"temperature\"><adjusted : 1"),
            "{output}"
        );
        assert!(
            output.contains("max_tokens\"><added : 4096>") || output.contains("<written 4096>"),
            "{output}"
        );
        assert!(output.contains("\"content\": \"Hi\""), "{output}");
    }

    #[test]
    fn a_refusal_is_the_error_of_the_client() {
        let input = r#"{"model":"m","temperature":9,"messages":[{"role":"user","content":"Hi"}]}"#;
        let view = explored(Format::Chat, Format::Messages, BodyKind::Request, input);
        let refused = view.refused.as_ref().expect("a refusal");
        assert_eq!(
            (refused.status, refused.path.as_deref()),
            (400, Some("temperature"))
        );
        assert!(view.input_text.text().contains("<refused \"temperature\">"));
        assert!(view.output.contains("\"error\""), "{}", view.output);
        let view = explored(Format::Chat, Format::Messages, BodyKind::Request, "no JSON");
        assert_eq!(view.refused.map(|refused| refused.status), Some(400));
        assert_eq!(view.input_text.text(), "no JSON\n");
    }

    #[test]
    fn every_sample_is_translated_into_every_format_of_conversations() {
        for from in Format::ALL {
            for to in Format::ALL {
                for kind in [BodyKind::Request, BodyKind::Response, BodyKind::Stream] {
                    let input = sample(from, kind);
                    assert!(is_sample(input));
                    let view = explored(from, to, kind, input);
                    assert!(
                        view.refused.is_none(),
                        "{from:?} {to:?} {kind:?}: {:?}",
                        view.refused
                    );
                    assert!(!view.output.contains("\"error\":{"), "{}", view.output);
                    assert_eq!(view.passes_through, from == to);
                    let is_shown = !view.output_text.lines.is_empty() && !view.output_text.is_cut;
                    assert!(is_shown, "{from:?} {to:?} {kind:?}");
                }
            }
        }
    }

    #[test]
    fn the_events_of_a_stream_are_lines() {
        let input = sample(Format::Chat, BodyKind::Stream);
        let view = explored(Format::Chat, Format::Messages, BodyKind::Stream, input);
        let output = view.output_text.text();
        assert!(
            output.contains("event: message_start\ndata: {\"type\": \"message_start\""),
            "{output}"
        );
        assert!(output.contains("\"text\": \"the weather.\""), "{output}");
        assert!(view.input_text.text().ends_with("data: [DONE]"));
    }
}
