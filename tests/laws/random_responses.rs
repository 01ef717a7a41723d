//! Random responses, as far as a format can express them.

use omniglot::model::{
    Arguments, Call, Choice, Citation, Finish, Format, Issuer, Logprob, Media, Part, PartKind,
    Response, Signature, Source, ToolKind, Usage,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;

pub const WORDS: &[&str] = &[
    "a",
    "Hello ",
    " two\n",
    "é😀",
    "\"quoted\\\"",
    "{}",
    "\u{0}\u{2028}",
    "data: x\n\n",
];
const ARGUMENTS: &[&str] = &[
    "{}",
    "{\"a\":1}",
    "{\"b\":[1.5,null,\"x\"],\"a\":{\"c\":\"\\\"\"}}",
    "{\"é\":\"😀\"}",
    "{ \"a\" : \"b\" }",
];

pub fn word() -> impl Strategy<Value = String> {
    select(WORDS).prop_map(str::to_owned)
}

pub fn call() -> impl Strategy<Value = PartKind<'static>> {
    (
        select(&["f", "get_weather", "a-b"][..]),
        select(ARGUMENTS),
        any::<bool>(),
    )
        .prop_map(|(name, arguments, tree)| {
            let tree = tree.then(|| serde_json::from_str(arguments).expect("JSON"));
            PartKind::Call(Call {
                id: None,
                name: name.into(),
                arguments: tree.map_or(Arguments::Text(arguments.into()), Arguments::Tree),
                signature: None,
                kind: ToolKind::Function,
            })
        })
}

pub fn text() -> impl Strategy<Value = PartKind<'static>> {
    word().prop_map(|word| PartKind::Text(word.into()))
}

fn thought(format: Format) -> impl Strategy<Value = PartKind<'static>> {
    let issuer = issuer(format);
    (word(), any::<bool>()).prop_map(move |(word, sealed)| PartKind::Reasoning {
        text: word.into(),
        signature: sealed.then(|| Signature {
            issuer,
            data: "c2VhbA==".into(),
        }),
    })
}

/// Images, and sound where the format has it; messages has no media in answers.
fn media(format: Format) -> impl Strategy<Value = PartKind<'static>> {
    let kinds: &[&str] = match format {
        Format::Chat | Format::Messages | Format::Responses | Format::Images => &["image/png"],
        Format::Native => &["image/png", "image/webp", "audio/wav"],
    };
    (select(kinds), select(&["QUJD", "AAAA+/=="][..])).prop_map(|(mime, data)| {
        PartKind::Media(Media {
            mime: mime.into(),
            source: Source::Base64(data.into()),
            name: None,
            detail: None,
        })
    })
}

fn usage(written: bool) -> impl Strategy<Value = Usage> {
    (0..900u64, 0..90u64, 0..9u64, 0..900u64, 0..90u64).prop_map(
        move |(fresh, cached, cache_written, plain, thinking)| {
            let cache_written = if written { cache_written } else { 0 };
            Usage {
                input: fresh + cached + cache_written,
                cached,
                cache_written,
                output: plain + thinking,
                thinking,
                ..Usage::default()
            }
        },
    )
}

/// Ends that the format has a word for, when nothing was called and nothing refused.
fn ends(format: Format) -> &'static [Finish<'static>] {
    match format {
        Format::Chat | Format::Native | Format::Images => &[Finish::Stop, Finish::Length],
        Format::Responses => &[Finish::Stop, Finish::Length, Finish::Filtered(None)],
        Format::Messages => &[
            Finish::Stop,
            Finish::Length,
            Finish::StopSequence(None),
            Finish::ContextFull,
            Finish::Paused,
            Finish::Filtered(None),
        ],
    }
}

fn issuer(format: Format) -> Issuer {
    match format {
        Format::Chat | Format::Messages | Format::Images => Issuer::Thinking,
        Format::Native => Issuer::Native,
        Format::Responses => Issuer::Responses,
    }
}

fn choice(format: Format) -> impl Strategy<Value = Choice<'static>> {
    let shows = u32::from(format != Format::Messages);
    let kinds = prop_oneof![
        3 => text(),
        2 => call(),
        1 => thought(format),
        shows => media(format),
    ];
    let refusal = matches!(format, Format::Chat | Format::Responses);
    (vec(kinds, 0..5), select(ends(format)), any::<u8>()).prop_map(move |(mut kinds, end, dice)| {
        let called = kinds.iter().any(|kind| matches!(kind, PartKind::Call(_)));
        let refused = refusal && !called && dice < 40;
        if refused {
            kinds.push(PartKind::Refusal("I will not.".into()));
        }
        for (number, kind) in kinds.iter_mut().enumerate() {
            if let PartKind::Call(call) = kind {
                call.id = Some(format!("call_{number}").into());
            }
        }
        let finish = match end {
            Finish::Length => Finish::Length,
            _ if called => Finish::Tools,
            _ if refused => Finish::Refused,
            end => end,
        };
        Choice {
            parts: kinds
                .into_iter()
                .map(|kind| Part { kind, at: None })
                .collect(),
            citations: Vec::new(),
            logprobs: Vec::new(),
            finish,
        }
    })
}

/// A reply that the format can say.
pub fn sayable(format: Format) -> impl Strategy<Value = Response<'static>> {
    let many = if matches!(format, Format::Chat | Format::Native) {
        2
    } else {
        1
    };
    (
        vec(choice(format), 1..=many),
        usage(format == Format::Messages),
    )
        .prop_map(|(choices, usage)| Response {
            id: "id_1".into(),
            model: "m".into(),
            created: 1_760_000_000,
            choices,
            usage: Some(usage),
        })
}

fn citation() -> impl Strategy<Value = Citation<'static>> {
    (word(), option::of(word()), 0..9u64).prop_map(|(url, title, start)| Citation {
        url: url.into(),
        title: title.map(Into::into),
        start,
        end: start + 1,
    })
}

fn logprob() -> impl Strategy<Value = Logprob<'static>> {
    (word(), -9.0..0.0f64).prop_map(|(token, logprob)| Logprob {
        top: vec![(token.clone().into(), logprob)],
        token: token.into(),
        logprob,
    })
}

/// Any reply at all.
pub fn anything() -> impl Strategy<Value = Response<'static>> {
    let choice = (
        choice(Format::Chat),
        vec(citation(), 0..3),
        vec(logprob(), 0..3),
    );
    let choice = choice.prop_map(|(choice, citations, logprobs)| Choice {
        citations,
        logprobs,
        ..choice
    });
    (vec(choice, 0..3), option::of(usage(true)), word()).prop_map(|(choices, usage, id)| Response {
        id: id.into(),
        model: "m".into(),
        created: 7,
        choices,
        usage,
    })
}
