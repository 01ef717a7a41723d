//! Random sequences of events that keep to the grammar of the model.

use omniglot::model::{Block, Citation, Delta, Event, Finish, Issuer, Signature, ToolKind, Usage};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// A choice; what it becomes depends on what is open.
type EventChoice = (u8, bool, &'static str, u8);

pub fn legal() -> impl Strategy<Value = Vec<Event<'static>>> {
    let choice = (
        0u8..12,
        prop::bool::weighted(0.2),
        select(&["a", "", "é ", "{}"][..]),
        any::<u8>(),
    );
    vec(choice, 0..24).prop_map(|wishes| {
        let mut events = vec![Event::Start {
            id: "id".into(),
            model: "m".into(),
            created: 1,
        }];
        let mut open: [Option<Block<'static>>; 2] = [None, None];
        for choice in wishes {
            events.extend(chosen_event(&mut open, choice));
        }
        for (choice, open) in (0..).zip(open) {
            events.extend(open.map(|_| Event::Close { choice }));
        }
        events.push(Event::End);
        events
    })
}

fn chosen_event(
    open: &mut [Option<Block<'static>>; 2],
    choice: EventChoice,
) -> Option<Event<'static>> {
    let (act, second, text, dice) = choice;
    let choice = u32::from(second);
    let slot = &mut open[usize::from(second)];
    match (act, slot.clone()) {
        (0, _) => {
            return Some(Event::Usage(Usage {
                input: 3,
                output: u64::from(dice),
                ..Usage::default()
            }));
        }
        (1, _) => {
            let delta = Delta::Citation(Citation {
                url: "https://a.example".into(),
                title: None,
                start: 0,
                end: 1,
            });
            return Some(Event::Delta { choice, delta });
        }
        (2, None) => {
            let ends = [
                Finish::Stop,
                Finish::Length,
                Finish::Tools,
                Finish::Filtered(None),
                Finish::Other,
            ];
            let reason = ends[usize::from(dice) % ends.len()].clone();
            return Some(Event::Finish { choice, reason });
        }
        (3..=4, Some(_)) => {
            *slot = None;
            return Some(Event::Close { choice });
        }
        (_, None) => {
            let block = block(dice);
            *slot = Some(block.clone());
            return Some(Event::Open { choice, block });
        }
        _ => {}
    }
    let delta = match slot.as_ref()? {
        Block::Text | Block::Refusal => Delta::Text(text.into()),
        Block::Reasoning if act == 5 => Delta::Signature(signature(dice)),
        Block::Reasoning => Delta::Text(text.into()),
        Block::Call { .. } => Delta::Arguments(text.into()),
        Block::Media(_) => return None,
    };
    Some(Event::Delta { choice, delta })
}

fn signature(dice: u8) -> Signature<'static> {
    let issuers = [
        Issuer::Thinking,
        Issuer::Redacted,
        Issuer::Native,
        Issuer::Responses,
    ];
    Signature {
        issuer: issuers[usize::from(dice) % issuers.len()],
        data: "data".into(),
    }
}

fn block(dice: u8) -> Block<'static> {
    let call = |kind| Block::Call {
        id: (dice > 99).then(|| format!("c{dice}").into()),
        name: "f".into(),
        kind,
    };
    match dice % 6 {
        0 | 1 => Block::Text,
        2 => Block::Refusal,
        3 => Block::Reasoning,
        4 => call(ToolKind::Function),
        _ => call(ToolKind::Custom),
    }
}
