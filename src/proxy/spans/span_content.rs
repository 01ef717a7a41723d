//! Keeps what a traced request asks and is answered, where `telemetry.content` is on.

use bytes::Bytes;

use crate::formats::Codec;
use crate::model::{Event, Fold, Losses};
use crate::proxy::context::{AttemptSpan, RequestContext, SpanContent};
use crate::proxy::gateway::Gateway;
use crate::sse::SseFrames;
use crate::telemetry::{Attributes, content, gen_ai};

/// How many bytes of a response are kept.
const MAX_RECEIVED: usize = 256 << 10;
/// How many choices of a stream are shown.
const MAX_CHOICES: u32 = 16;

impl Gateway {
    /// Keeps the messages of a conversation that is traced.
    pub(in crate::proxy) fn keep_input(&self, ctx: &mut RequestContext) {
        let keeps_content = self.telemetry.as_ref();
        let keeps_content = keeps_content.is_some_and(|telemetry| telemetry.keeps_content());
        let request = ctx.route.request();
        let request = request.filter(|request| request.is_conversation());
        let Some(request) = request.filter(|_| keeps_content && ctx.is_sampled()) else {
            return;
        };
        let (traits, mut losses) = (ctx.route.model_traits(), Losses::default());
        let head = request.head(&traits);
        let decoded = ctx.client.codec();
        let decoded = decoded.decode_request(&head, &ctx.route.body, &mut losses);
        let kept = decoded.map(|request| SpanContent {
            input: content::input_messages(&request),
            system: content::system_instructions(&request),
            received: Vec::new(),
        });
        if let (Some(spans), Ok(kept)) = (&mut ctx.spans, kept) {
            spans.content = Some(Box::new(kept));
        }
    }
}

/// Keeps a chunk of the response that is under way.
pub(in crate::proxy) fn keep_chunk(ctx: &mut RequestContext, chunk: Option<&Bytes>) {
    let content = ctx.spans.as_mut().and_then(|spans| spans.content.as_mut());
    if let (Some(content), Some(chunk)) = (content, chunk) {
        let left = MAX_RECEIVED.saturating_sub(content.received.len());
        content
            .received
            .extend_from_slice(&chunk[..chunk.len().min(left)]);
    }
}

/// Adds the content to the span of the attempt that was answered last.
pub(in crate::proxy) fn add_content(
    attributes: &mut Attributes,
    kept: &SpanContent,
    traced: &AttemptSpan,
    is_stream: bool,
) {
    attributes.known_text(gen_ai::INPUT_MESSAGES, kept.input.as_deref());
    attributes.known_text(gen_ai::SYSTEM_INSTRUCTIONS, kept.system.as_deref());
    let codec = traced.attempt.upstream.format.codec();
    let output = match is_stream {
        true => output_of_stream(codec, &kept.received),
        false => {
            let decoded = codec.decode_response(&kept.received, &mut Losses::default());
            decoded.ok().and_then(|it| content::output_messages(&it))
        }
    };
    attributes.known_text(gen_ai::OUTPUT_MESSAGES, output);
}

/// The output of a stream as far as it was kept.
fn output_of_stream(codec: &dyn Codec, received: &[u8]) -> Option<String> {
    let (mut decoder, mut fold) = (codec.stream_decoder(), Fold::default());
    let mut keep = |event: Event<'_>| {
        if choice(&event) < MAX_CHOICES {
            fold.push(event);
        }
    };
    // What cannot be decoded ends the stream for its client, and is the error of the span.
    SseFrames::default().push(received, |frame| {
        if let Some(data) = frame.data.filter(|data| !data.is_empty()) {
            let _ = decoder.decode_event(&data, &mut keep);
        }
    });
    let _ = decoder.finish(&mut keep);
    content::output_messages(&fold.finish())
}

const fn choice(event: &Event<'_>) -> u32 {
    match event {
        Event::Open { choice, .. }
        | Event::Delta { choice, .. }
        | Event::Close { choice }
        | Event::Finish { choice, .. } => *choice,
        Event::Start { .. } | Event::Usage(_) | Event::End => 0,
    }
}
