//! Bodies with one long value, and with many that refer to it.

use omniglot::formats::{Capabilities, RequestHead, UpstreamTarget};
use omniglot::model::{Format, Losses};
use omniglot::translate as translation;

use crate::measure::{check, excess};
use crate::{requests, responses, streams};

const COUNT: usize = 20_000;

/// Metadata with one address of so many bytes, which is cited half as often.
fn grounding(count: usize) -> String {
    let (address, numbers) = ("a".repeat(count), vec!["0"; count / 2].join(","));
    format!(
        r#""groundingMetadata":{{"groundingChunks":[{{"web":{{"uri":"https://{address}"}}}}],"groundingSupports":[{{"segment":{{"endIndex":1}},"groundingChunkIndices":[{numbers}]}}]}}"#
    )
}

fn native(grounding: &str) -> String {
    format!(
        r#"{{"candidates":[{{"content":{{"parts":[{{"text":"A"}}]}},"finishReason":"STOP",{grounding}}}]}}"#
    )
}

#[test]
fn the_work_for_a_long_address_grows_with_its_size() {
    let mut found = Vec::new();
    for to in [Format::Chat, Format::Messages, Format::Responses] {
        let options = responses::options(false, 0);
        let body = |count| native(&grounding(count)).into_bytes();
        let work = |body: &[u8]| responses::translate(Format::Native, to, body, &options);
        found.extend(excess(COUNT, body, work));
        // The second chunk is compared with what the first one had.
        let first = native(&grounding(2));
        let wire = |count| {
            let second = native(&grounding(count));
            format!("data: {first}\n\ndata: {second}\n\n").into_bytes()
        };
        let work = |wire: &[u8]| streams::translate(Format::Native, to, wire);
        found.extend(excess(COUNT, wire, work));
    }
    check(found);
}

fn translate(to: Format, body: &[u8]) {
    let capabilities = Capabilities::default();
    let target = UpstreamTarget {
        model: "upstream-model",
        stream: false,
        max_output_tokens: None,
        capabilities: &capabilities,
        brand: "vendor",
        images_only: false,
    };
    let (head, mut losses) = (RequestHead::default(), Losses::default());
    let _ = translation::request(Format::Chat, to, &head, body, &target, &mut losses);
    let _ = Format::Chat.codec().input_media(&head, body);
}

#[test]
fn the_work_for_a_long_host_grows_with_its_size() {
    let body = |count: usize| {
        let host: String = (0..count)
            .filter_map(|at| char::from_u32(0x4e00 + (at * 37 % 20_000) as u32))
            .collect();
        let part = format!(r#"{{"type":"image_url","image_url":{{"url":"https://{host}/"}}}}"#);
        let turn = format!(r#"{{"role":"user","content":[{part}]}}"#);
        requests::body(Format::Chat, &turn, "", "")
    };
    let mut found = Vec::new();
    for to in [Format::Messages, Format::Native, Format::Responses] {
        found.extend(excess(COUNT, body, |body| translate(to, body)));
    }
    check(found);
}
