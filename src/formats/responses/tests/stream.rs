use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::response::{encode, tests::asked};
use super::*;
use crate::model::{Choice, FaultKind, Fold, Issuer, Media, Part, PartKind, Response, Source};
use crate::sse::Frames;

/// What was written, after a check that names and numbers are right.
fn events_in(out: &mut SseWriter) -> Vec<Value> {
    let mut events: Vec<Value> = Vec::new();
    let mut frames = Frames::default();
    let mut note = |frame: crate::sse::Frame<'_>| {
        let data = frame.data.expect("data");
        let event: Value = serde_json::from_str(&data).expect("JSON");
        assert_eq!(event["type"], frame.name.as_ref());
        assert_eq!(event["sequence_number"], events.len());
        events.push(event);
    };
    frames.push(&out.take(), &mut note);
    frames.finish(&mut note);
    events
}

fn stream(events: &[Event<'_>]) -> Vec<Value> {
    let mut encoder = Encoder::new(&asked("m-1"));
    let mut out = SseWriter::default();
    for event in events {
        encoder.event(event.clone(), &mut out);
    }
    events_in(&mut out)
}

fn names(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .filter_map(|event| event["type"].as_str())
        .map(|name| name.strip_prefix("response.").unwrap_or(name))
        .collect()
}

/// Walks the grammar: one item at a time, ids that agree, deltas that add up, a final reply that
/// holds what the items said. Gives back the final reply.
fn check(events: &[Value]) -> Value {
    assert_eq!(names(events)[..2], ["created", "in_progress"]);
    let (last, body) = events[2..].split_last().expect("an end");
    let mut done: Vec<Value> = Vec::new();
    let mut open: Option<Value> = None;
    let mut written = String::new();
    for (event, name) in body.iter().zip(names(body)) {
        if name != "output_item.added" {
            let item = open.as_ref().expect("an open item");
            let id = event.get("item_id").unwrap_or(&event["item"]["id"]);
            assert_eq!(*id, item["id"]);
            assert_eq!(event["output_index"], done.len());
        }
        match name {
            "output_item.added" => {
                assert!(open.is_none(), "items never overlap");
                assert_eq!(event["output_index"], done.len());
                open = Some(event["item"].clone());
                written.clear();
            }
            "output_item.done" => {
                done.push(event["item"].clone());
                open = None;
            }
            "content_part.added" | "reasoning_summary_part.added" => written.clear(),
            "output_text.annotation.added" => {}
            _ if name.ends_with(".delta") => written += event["delta"].as_str().expect("text"),
            "content_part.done" | "reasoning_summary_part.done" => {
                let part = &event["part"];
                let text = part.get("text").unwrap_or(&part["refusal"]);
                assert_eq!(*text, written);
            }
            _ if name.ends_with(".done") => {
                let keys = ["text", "refusal", "arguments", "input"];
                let whole = keys.iter().find_map(|key| event.get(key));
                assert_eq!(whole, Some(&Value::from(written.as_str())));
            }
            "image_generation_call.in_progress" | "image_generation_call.completed" => {}
            other => panic!("{other}"),
        }
    }
    assert!(open.is_none(), "every item is closed");
    let name = names(std::slice::from_ref(last))[0];
    assert_eq!(last["response"]["status"], name);
    let without_notes = |items: &[Value]| {
        let mut items = items.to_vec();
        for content in items
            .iter_mut()
            .filter_map(|item| item["content"].as_array_mut())
        {
            content
                .iter_mut()
                .for_each(|part| part["annotations"] = Value::Null);
        }
        items
    };
    let output = last["response"]["output"].as_array().expect("items");
    assert_eq!(without_notes(output), without_notes(&done));
    last["response"].clone()
}

fn open(block: Block<'static>) -> Event<'static> {
    Event::Open { choice: 0, block }
}

fn delta(delta: Delta<'static>) -> Event<'static> {
    Event::Delta { choice: 0, delta }
}

fn text(words: &'static str) -> Event<'static> {
    delta(Delta::Text(words.into()))
}

const CLOSE: Event<'static> = Event::Close { choice: 0 };

fn start() -> Event<'static> {
    Event::Start {
        id: "chatcmpl-1".into(),
        model: "upstream-name".into(),
        created: 1_760_000_000,
    }
}

fn finish(reason: Finish<'static>) -> Event<'static> {
    Event::Finish { choice: 0, reason }
}

fn call(id: Option<&'static str>) -> Event<'static> {
    open(Block::Call {
        id: id.map(Into::into),
        name: "get_weather".into(),
        kind: ToolKind::Function,
    })
}

fn arguments(words: &'static str) -> Event<'static> {
    delta(Delta::Arguments(words.into()))
}

fn seal(issuer: Issuer, data: &'static str) -> Event<'static> {
    let data = data.into();
    delta(Delta::Seal(Seal { issuer, data }))
}

#[test]
fn text_and_a_call_are_written_event_by_event() {
    let usage = Usage {
        input: 20,
        output: 12,
        ..Usage::default()
    };
    let events = stream(&[
        start(),
        open(Block::Text),
        text("Ok."),
        CLOSE,
        call(Some("call_1")),
        arguments("{\"city\":"),
        arguments("\"Paris\"}"),
        CLOSE,
        finish(Finish::Tools),
        Event::Usage(usage),
        Event::End,
    ]);
    check(&events);
    let frame = json!({"id":"resp_1","object":"response","created_at":1_760_000_000,
        "status":"in_progress","error":null,"incomplete_details":null,"model":"m-1","output":[],
        "parallel_tool_calls":true,"tool_choice":"auto","tools":[],"usage":null});
    let message = json!({"type":"message","id":"msg_1_0","status":"completed","role":"assistant",
        "content":[{"type":"output_text","text":"Ok.","annotations":[]}]});
    let function = json!({"type":"function_call","id":"fc_call_1","call_id":"call_1",
        "name":"get_weather","arguments":"{\"city\":\"Paris\"}","status":"completed"});
    let mut whole = frame.clone();
    whole["status"] = "completed".into();
    whole["output"] = json!([message, function]);
    whole["usage"] = json!({"input_tokens":20,
        "input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},"output_tokens":12,
        "output_tokens_details":{"reasoning_tokens":0},"total_tokens":32});
    let expected = json!([
        {"type":"response.created","sequence_number":0,"response":frame},
        {"type":"response.in_progress","sequence_number":1,"response":frame},
        {"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":
            {"type":"message","id":"msg_1_0","status":"in_progress","role":"assistant","content":[]}},
        {"type":"response.content_part.added","sequence_number":3,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,
            "part":{"type":"output_text","text":"","annotations":[]}},
        {"type":"response.output_text.delta","sequence_number":4,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,"delta":"Ok.","logprobs":[]},
        {"type":"response.output_text.done","sequence_number":5,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,"text":"Ok.","logprobs":[]},
        {"type":"response.content_part.done","sequence_number":6,"item_id":"msg_1_0",
            "output_index":0,"content_index":0,
            "part":{"type":"output_text","text":"Ok.","annotations":[]}},
        {"type":"response.output_item.done","sequence_number":7,"output_index":0,"item":message},
        {"type":"response.output_item.added","sequence_number":8,"output_index":1,"item":
            {"type":"function_call","id":"fc_call_1","call_id":"call_1","name":"get_weather",
             "arguments":"","status":"in_progress"}},
        {"type":"response.function_call_arguments.delta","sequence_number":9,
            "item_id":"fc_call_1","output_index":1,"delta":"{\"city\":"},
        {"type":"response.function_call_arguments.delta","sequence_number":10,
            "item_id":"fc_call_1","output_index":1,"delta":"\"Paris\"}"},
        {"type":"response.function_call_arguments.done","sequence_number":11,
            "item_id":"fc_call_1","output_index":1,"arguments":"{\"city\":\"Paris\"}"},
        {"type":"response.output_item.done","sequence_number":12,"output_index":1,"item":function},
        {"type":"response.completed","sequence_number":13,"response":whole},
    ]);
    assert_eq!(Value::Array(events), expected);
}

#[test]
fn thoughts_are_summaries_and_a_late_seal_is_an_item_of_its_own() {
    let events = stream(&[
        start(),
        open(Block::Thought),
        text("Think"),
        text("ing."),
        CLOSE,
        open(Block::Text),
        text("42"),
        CLOSE,
        open(Block::Thought),
        seal(Issuer::Native, "Q2lRQmU5L2U="),
        CLOSE,
        finish(Finish::Stop),
        Event::End,
    ]);
    check(&events);
    assert_eq!(
        names(&events)[2..],
        [
            "output_item.added",
            "reasoning_summary_part.added",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.delta",
            "reasoning_summary_text.done",
            "reasoning_summary_part.done",
            "output_item.done",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "output_item.done",
            "completed",
        ]
    );
    assert_eq!(
        events[2]["item"],
        json!({"type":"reasoning","id":"rs_1_0","summary":[]})
    );
    assert_eq!(
        events[7]["part"],
        json!({"type":"summary_text","text":"Thinking."})
    );
    assert_eq!(
        events[16]["item"],
        json!({"type":"reasoning","id":"rs_1_2","summary":[],
            "encrypted_content":"b21uaWdsb3QvMSBuClEybFJRbVU1TDJVPQ=="})
    );
}

#[test]
fn the_last_item_of_a_cut_reply_is_incomplete() {
    let events = stream(&[
        start(),
        open(Block::Text),
        text("Hel"),
        CLOSE,
        finish(Finish::Length),
        Event::End,
    ]);
    let reply = check(&events);
    assert_eq!(reply["incomplete_details"]["reason"], "max_output_tokens");
    assert_eq!(events[events.len() - 2]["item"]["status"], "incomplete");
}

#[test]
fn texts_in_a_row_are_one_and_sources_are_announced_while_it_is_open() {
    let citation = |start, end| {
        let (url, title) = ("https://a.example".into(), None);
        delta(Delta::Citation(Citation {
            url,
            title,
            start,
            end,
        }))
    };
    let events = stream(&[
        start(),
        open(Block::Text),
        text("Café"),
        CLOSE,
        call(Some("c")),
        CLOSE,
        open(Block::Text),
        text("One."),
        CLOSE,
        open(Block::Text),
        text(" Two."),
        CLOSE,
        citation(4, 8),
        citation(0, 4),
        finish(Finish::Stop),
        Event::End,
    ]);
    let reply = check(&events);
    let announced: Vec<_> = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.annotation.added")
        .collect();
    assert_eq!(announced.len(), 1, "the other text was closed by then");
    assert_eq!(announced[0]["annotation"]["start_index"], 0);
    assert_eq!(announced[0]["annotation"]["title"], "");
    let notes = |item: usize| reply["output"][item]["content"][0]["annotations"].clone();
    assert_eq!(notes(2)[0], announced[0]["annotation"]);
    assert_eq!(notes(0)[0]["end_index"], 4);
    assert_eq!(reply["output"][2]["content"][0]["text"], "One. Two.");
    assert_eq!(reply["output"][1]["arguments"], "{}");
}

#[test]
fn a_seal_that_comes_late_still_goes_out() {
    let events = stream(&[
        start(),
        call(None),
        arguments("{}"),
        seal(Issuer::Native, "x"),
        CLOSE,
        finish(Finish::Tools),
        Event::End,
    ]);
    let reply = check(&events);
    assert_eq!(reply["output"][0]["type"], "function_call");
    assert_eq!(reply["output"][1]["type"], "reasoning");
    assert!(reply["output"][1]["encrypted_content"].is_string());
}

#[test]
fn an_own_seal_is_raw_only_under_its_own_id() {
    let own = || seal(Issuer::Responses, "rs_7\ngAAAA");
    let first = check(&stream(&[
        start(),
        open(Block::Thought),
        own(),
        CLOSE,
        Event::End,
    ]));
    assert_eq!(first["output"][0]["id"], "rs_7");
    assert_eq!(first["output"][0]["encrypted_content"], "gAAAA");
    let thought = [
        start(),
        open(Block::Thought),
        text("t"),
        own(),
        CLOSE,
        Event::End,
    ];
    let later = check(&stream(&thought));
    let wrapped = later["output"][0]["encrypted_content"].as_str();
    let seal = wrapped.and_then(Seal::unwrap_text).expect("a wrapped seal");
    assert_eq!(seal.data, "rs_7\ngAAAA");
}

#[test]
fn log_probabilities_ride_on_deltas_and_are_repeated() {
    let logprob = Logprob {
        token: "a".into(),
        logprob: -1.0,
        top: Vec::new(),
    };
    let events = stream(&[
        start(),
        open(Block::Text),
        text("a"),
        delta(Delta::Logprob(logprob)),
        CLOSE,
        Event::End,
    ]);
    check(&events);
    let expected = json!([{"token":"a","bytes":[97],"logprob":-1.0,"top_logprobs":[]}]);
    assert_eq!(events[5]["delta"], "");
    assert_eq!(events[5]["logprobs"], expected);
    assert_eq!(events[6]["logprobs"], expected);
    assert_eq!(events[7]["part"]["logprobs"], expected);
}

#[test]
fn other_choices_are_not_heard() {
    let events = stream(&[
        start(),
        Event::Open {
            choice: 1,
            block: Block::Text,
        },
        Event::Delta {
            choice: 1,
            delta: Delta::Text("x".into()),
        },
        Event::Close { choice: 1 },
        Event::Finish {
            choice: 1,
            reason: Finish::Length,
        },
        Event::End,
    ]);
    assert_eq!(check(&events)["output"], json!([]));
}

fn rich() -> Response<'static> {
    let sealed = |issuer| {
        Some(Seal {
            issuer,
            data: "data".into(),
        })
    };
    let call = |id: Option<&'static str>, kind, seal| {
        PartKind::Call(crate::model::Call {
            id: id.map(Into::into),
            name: "f".into(),
            arguments: crate::model::Arguments::Text("{\"a\":1}".into()),
            seal,
            kind,
        })
    };
    let parts = vec![
        PartKind::Thought {
            text: "Hm.".into(),
            seal: sealed(Issuer::Thinking),
        },
        PartKind::Thought {
            text: "".into(),
            seal: sealed(Issuer::Redacted),
        },
        PartKind::Text("One".into()),
        PartKind::Text(" two.".into()),
        PartKind::Refusal("No.".into()),
        call(Some("c1"), ToolKind::Function, sealed(Issuer::Native)),
        call(None, ToolKind::Custom, None),
        call(None, ToolKind::Function, None),
        PartKind::Media(Media {
            mime: "image/png".into(),
            source: Source::Base64("AAAA".into()),
            name: None,
            detail: None,
        }),
        PartKind::Text("End".into()),
    ];
    let citation = |start, end| Citation {
        url: "https://a.example".into(),
        title: Some("A".into()),
        start,
        end,
    };
    Response {
        id: "msg_1".into(),
        model: "m".into(),
        created: 7,
        choices: vec![Choice {
            parts: parts
                .into_iter()
                .map(|kind| Part { kind, at: None })
                .collect(),
            citations: vec![citation(0, 3), citation(8, 11)],
            logprobs: vec![Logprob {
                token: "End".into(),
                logprob: -0.1,
                top: Vec::new(),
            }],
            finish: Finish::Filtered(Some("Stopped.".into())),
        }],
        usage: Some(Usage {
            input: 3,
            output: 2,
            ..Usage::default()
        }),
    }
}

fn unfolded(response: &Response<'_>) -> Vec<Value> {
    let mut encoder = Encoder::new(&asked("m-1"));
    let mut out = SseWriter::default();
    response.unfold(&mut |event| encoder.event(event, &mut out));
    events_in(&mut out)
}

#[test]
fn the_stream_of_a_reply_ends_with_its_json() {
    let response = rich();
    let json: Value = serde_json::from_slice(&encode(&response, &asked("m-1"))).expect("JSON");
    assert_eq!(check(&unfolded(&response)), json);
}

#[test]
fn a_fault_ends_the_stream_wherever_it_comes() {
    let mut count = 0;
    rich().unfold(&mut |_| count += 1);
    let fault = Fault::new(FaultKind::Overloaded, "Overloaded.");
    for cut in 0..count {
        let mut encoder = Encoder::new(&asked("m-1"));
        let mut out = SseWriter::default();
        let mut seen = 0;
        rich().unfold(&mut |event| {
            if seen == cut {
                encoder.fault(&fault, &mut out);
            }
            encoder.event(event, &mut out);
            seen += 1;
        });
        encoder.fault(&fault, &mut out);
        let events = events_in(&mut out);
        let names = names(&events);
        assert_eq!(names[..2], ["created", "in_progress"]);
        assert_eq!(names[names.len() - 2..], ["error", "failed"]);
        assert!(!names[..names.len() - 2].contains(&"error"));
        let error = &events[events.len() - 2];
        assert_eq!(
            *error,
            json!({"type":"error","sequence_number":events.len() - 2,"code":"server_error",
                "message":"Overloaded.","param":null})
        );
        let failed = &events[events.len() - 1]["response"];
        assert_eq!(failed["status"], "failed");
        assert_eq!(
            failed["error"],
            json!({"code":"server_error","message":"Overloaded."})
        );
        let done = names.iter().filter(|name| **name == "output_item.done");
        assert_eq!(
            failed["output"].as_array().expect("items").len(),
            done.count()
        );
    }
}

fn any_block() -> impl Strategy<Value = Vec<Event<'static>>> {
    let words = || prop::collection::vec(prop::sample::select(vec!["", "a", "é ", "{}"]), 0..3);
    let texts = |words: Vec<&'static str>| words.into_iter().map(text).collect::<Vec<_>>();
    let written = move |block: Block<'static>| {
        words().prop_map(move |words| (open(block.clone()), texts(words)))
    };
    let kinds = prop::sample::select(vec![ToolKind::Function, ToolKind::Custom]);
    let calls =
        (any::<bool>(), any::<bool>(), kinds, words()).prop_map(|(named, sealed, kind, words)| {
            let id = named.then(|| "call_1".into());
            let name = "f".into();
            let first = sealed.then(|| seal(Issuer::Native, "n"));
            let deltas = first.into_iter().chain(words.into_iter().map(arguments));
            (open(Block::Call { id, name, kind }), deltas.collect())
        });
    let thoughts = (any::<bool>(), words()).prop_map(move |(sealed, words)| {
        let last = sealed.then(|| seal(Issuer::Thinking, "m"));
        let deltas = words.into_iter().map(text).chain(last);
        (open(Block::Thought), deltas.collect())
    });
    prop_oneof![
        written(Block::Text),
        written(Block::Refusal),
        thoughts,
        calls
    ]
    .prop_map(|(first, deltas): (_, Vec<_>)| {
        let mut events = vec![first];
        events.extend(deltas);
        events.push(CLOSE);
        events
    })
}

proptest! {
    #[test]
    fn any_legal_sequence_gives_a_legal_stream_that_says_the_same(
        blocks in prop::collection::vec(any_block(), 0..6),
        early in any::<bool>(),
        reason in prop::sample::select(vec![Finish::Stop, Finish::Length, Finish::Tools]),
    ) {
        let mut events = vec![start()];
        events.extend(early.then(|| finish(reason.clone())));
        events.extend(blocks.into_iter().flatten());
        events.extend((!early).then(|| finish(reason)));
        events.push(Event::End);
        let mut fold = Fold::default();
        events.iter().for_each(|event| fold.push(event.clone()));
        let whole = encode(&fold.finish(), &asked("m-1"));
        let whole: Value = serde_json::from_slice(&whole).expect("JSON");
        prop_assert_eq!(check(&stream(&events)), whole);
    }
}
