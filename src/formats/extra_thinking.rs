//! Thinking that an upstream may generate beside the limit of the output: what requests ask for it, and how much.

use crate::json::{JsonReader, UniqueField};

/// Thinking beside the limit of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraThinking {
    /// The field that asks for it.
    pub field: &'static str,
    /// The most tokens of it; `None`: the request does not say.
    pub budget: Option<u64>,
}

impl ExtraThinking {
    /// Takes the more of both: an upstream may read either.
    fn or_more(self, earlier: Option<ExtraThinking>) -> ExtraThinking {
        match earlier {
            Some(earlier) if earlier.most() >= self.most() => earlier,
            _ => self,
        }
    }

    fn most(self) -> u64 {
        self.budget.unwrap_or(u64::MAX)
    }
}

/// A field that turns thinking on, and the one beside it, or in it, that limits it.
#[derive(Clone, Copy)]
pub(super) enum ThinkingSwitch {
    /// A field that is on unless it is `false`.
    Flag,
    /// A number of tokens, be the switch on or not.
    Budget,
    /// An object that is on if any of its fields is, but for the one that limits it.
    Settings { budget: &'static str },
    /// An object that is on unless its `type` is `disabled`.
    Typed { budget: &'static str },
    /// An object that is on if it has the limit.
    Limit { budget: &'static str },
}

/// Finds the most thinking that any of the fields asks for. The limit of a flag is the field that follows it.
pub(super) fn find_extra_thinking(
    fields: &[UniqueField<'_>],
    switches: &[ThinkingSwitch],
) -> Option<ExtraThinking> {
    let limit_after = |at: usize| {
        let next = fields.get(at + 1)?.value()?;
        matches!(switches.get(at + 1), Some(ThinkingSwitch::Budget))
            .then(|| parse_budget(next.get()))?
    };
    let mut found: Option<ExtraThinking> = None;
    for (at, (field, switch)) in fields.iter().zip(switches).enumerate() {
        let Some(raw) = field.value() else {
            continue;
        };
        let (is_on, budget) = match *switch {
            ThinkingSwitch::Flag => (raw.get() != "false", limit_after(at)),
            ThinkingSwitch::Budget => (true, parse_budget(raw.get())),
            ThinkingSwitch::Settings { budget } => {
                let members = Members::read(raw.get(), budget);
                (members.is_any_on || members.has_budget, members.budget)
            }
            ThinkingSwitch::Typed { budget } => {
                let members = Members::read(raw.get(), budget);
                (!members.is_disabled || members.has_budget, members.budget)
            }
            ThinkingSwitch::Limit { budget } => {
                let members = Members::read(raw.get(), budget);
                (members.has_budget, members.budget)
            }
        };
        if is_on {
            let field = field.name();
            found = Some(ExtraThinking { field, budget }.or_more(found));
        }
    }
    found
}

/// What an object, or a flag in its place, says of thinking.
#[derive(Default)]
struct Members {
    is_any_on: bool,
    is_disabled: bool,
    has_budget: bool,
    budget: Option<u64>,
}

impl Members {
    fn read(text: &str, budget: &str) -> Members {
        let mut members = Members::default();
        let mut reader = JsonReader::new(text);
        if reader.peek() != Some(b'{') {
            (members.is_any_on, members.is_disabled) = (text != "false", text == "false");
            return members;
        }
        let mut unlimited = false;
        let read = reader.object(|reader, key| {
            let value = reader.raw()?;
            let is_off = value == "null" || value == "false";
            if key == "type" {
                members.is_disabled = value == r#""disabled""#;
            } else if key == budget && value != "null" {
                // Of two such fields, an upstream may read the larger one.
                members.has_budget = true;
                let tokens = parse_budget(value);
                unlimited |= tokens.is_none();
                members.budget = members.budget.max(tokens);
            } else {
                members.is_any_on |= !is_off;
            }
            Ok(())
        });
        if read.is_err() || unlimited {
            members.budget = None;
        }
        members
    }
}

/// A number of tokens; a negative one, or what is no number, stands for no limit.
fn parse_budget(text: &str) -> Option<u64> {
    let number: f64 = text.parse().ok()?;
    (number >= 0.0).then_some(number.ceil() as u64)
}

#[cfg(test)]
mod tests {
    use crate::model::Format;

    #[test]
    fn thinking_is_found_unless_it_is_off() {
        for (fields, found) in [
            (r#""max_tokens":5"#, None),
            (r#""reasoning_effort":"high""#, None),
            (r#""enable_thinking":false"#, None),
            (r#""enable_thinking":null"#, None),
            (r#""enable_thinking":true"#, Some(("enable_thinking", None))),
            (
                r#""enable_thinking":true,"thinking_budget":700"#,
                Some(("enable_thinking", Some(700))),
            ),
            (
                r#""thinking_budget":700"#,
                Some(("thinking_budget", Some(700))),
            ),
            (r#""thinking_budget":-1"#, Some(("thinking_budget", None))),
            (r#""chat_template_kwargs":{"enable_thinking":false}"#, None),
            (r#""chat_template_kwargs":{}"#, None),
            (
                r#""chat_template_kwargs":{"thinking":true}"#,
                Some(("chat_template_kwargs", None)),
            ),
            (
                r#""chat_template_kwargs":{"enable_thinking":true,"thinking_budget":9}"#,
                Some(("chat_template_kwargs", Some(9))),
            ),
            (r#""reasoning":{"effort":"high","enabled":true}"#, None),
            (
                r#""reasoning":{"max_tokens":2000}"#,
                Some(("reasoning", Some(2000))),
            ),
            (r#""thinking":{"type":"disabled"}"#, None),
            (r#""thinking":{"type":"enabled"}"#, Some(("thinking", None))),
            (
                r#""thinking":{"type":"enabled","budget_tokens":1024.0}"#,
                Some(("thinking", Some(1024))),
            ),
            (
                r#""thinking":{"budget_tokens":1,"budget_tokens":9}"#,
                Some(("thinking", Some(9))),
            ),
            // A limit holds for its own field only.
            (
                r#""enable_thinking":true,"reasoning":{"max_tokens":1}"#,
                Some(("enable_thinking", None)),
            ),
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let findings = Format::Chat.codec().findings(body.as_bytes());
            let thinking = findings.extra_thinking;
            let thinking = thinking.map(|thinking| (thinking.field, thinking.budget));
            assert_eq!(thinking, found, "{fields}");
            let twice =
                format!(r#"{{"model":"m",{fields},"thinking_budget":1,"thinking_budget":2}}"#);
            let findings = Format::Chat.codec().findings(twice.as_bytes());
            assert!(findings.dearer_setting().is_err(), "{twice}");
        }
    }
}
