//! Thinking that an upstream may generate beside the limit of the output: what requests ask for it, and how much.

use crate::json::{JsonReader, UniqueField, is_same_but_for_case};

/// Thinking beside the limit of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraThinking {
    /// The field that asks for it.
    pub field: &'static str,
    /// The most tokens of it; `None`: the request does not say.
    pub budget: Option<u64>,
    /// The largest number that the request names, be it a limit or not.
    pub named: u64,
}

impl ExtraThinking {
    /// Takes the more of both: an upstream may read either.
    fn or_more(self, earlier: Option<ExtraThinking>) -> ExtraThinking {
        let Some(earlier) = earlier else {
            return self;
        };
        let more = if earlier.most() >= self.most() {
            earlier
        } else {
            self
        };
        ExtraThinking {
            named: self.named.max(earlier.named),
            ..more
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
    /// An object whose limit is within that of the output, which is the field that follows it, unless it is larger.
    Within { budget: &'static str },
    /// The limit of the output.
    OutputLimit,
}

/// Finds the most thinking that any of the fields asks for. The limit of a flag is the field that follows it.
pub(super) fn find_extra_thinking(
    fields: &[UniqueField<'_>],
    switches: &[ThinkingSwitch],
) -> Option<ExtraThinking> {
    let limit_after = |at: usize| parse_budget(fields.get(at + 1)?.value()?.get());
    let mut found: Option<ExtraThinking> = None;
    for (at, (field, switch)) in fields.iter().zip(switches).enumerate() {
        let Some(raw) = field.value() else {
            continue;
        };
        let (is_on, members) = match *switch {
            ThinkingSwitch::Flag => {
                let budget = limit_after(at);
                (raw.get() != "false", Members::of_budget(budget))
            }
            ThinkingSwitch::Budget => (true, Members::of_budget(parse_budget(raw.get()))),
            ThinkingSwitch::Settings { budget } => {
                let members = Members::read(raw.get(), budget);
                (members.is_any_on || members.has_budget, members)
            }
            ThinkingSwitch::Typed { budget } => {
                let members = Members::read(raw.get(), budget);
                (!members.is_disabled || members.has_budget, members)
            }
            ThinkingSwitch::Limit { budget } => {
                let members = Members::read(raw.get(), budget);
                (members.has_budget, members)
            }
            ThinkingSwitch::Within { budget } => {
                let members = Members::read(raw.get(), budget);
                let output = limit_after(at).unwrap_or_default();
                let is_within = members.budget.is_some_and(|budget| budget <= output);
                (members.has_budget && !is_within, members)
            }
            ThinkingSwitch::OutputLimit => continue,
        };
        if is_on {
            let thinking = ExtraThinking {
                field: field.name(),
                budget: members.budget,
                named: members.named,
            };
            found = Some(thinking.or_more(found));
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
    /// The limit; `None`: there is none, or nobody knows which one an upstream reads.
    budget: Option<u64>,
    /// The largest number that stands there as a limit.
    named: u64,
}

impl Members {
    fn of_budget(budget: Option<u64>) -> Members {
        Members {
            budget,
            named: budget.unwrap_or_default(),
            ..Members::default()
        }
    }

    /// Reads an object as any upstream may: one takes the first of two fields and another the last, and some do not mind the case
    /// of a name.
    fn read(text: &str, budget: &str) -> Members {
        let mut members = Members::default();
        let mut reader = JsonReader::new(text);
        if reader.peek() != Some(b'{') {
            (members.is_any_on, members.is_disabled) = (text != "false", text == "false");
            return members;
        }
        let (mut unlimited, mut types) = (false, 0);
        let read = reader.object(|reader, key| {
            let value = reader.raw()?;
            let is_off = value == "null" || value == "false";
            if is_same_but_for_case(key, "type") {
                types += 1;
                unlimited |= key != "type" || types > 1;
                members.is_disabled = value == r#""disabled""#;
            } else if is_same_but_for_case(key, budget) && value != "null" {
                // Of two such fields, an upstream may read the larger one.
                members.has_budget = true;
                let tokens = parse_budget(value);
                unlimited |= key != budget || tokens.is_none();
                members.named = members.named.max(tokens.unwrap_or_default());
            } else {
                members.is_any_on |= !is_off;
            }
            Ok(())
        });
        let is_unsure = read.is_err() || unlimited;
        members.is_disabled &= !is_unsure;
        members.budget = Some(members.named).filter(|_| members.has_budget && !is_unsure);
        members
    }
}

/// A number of tokens, which some upstreams also read from a text; a negative one, or what is no number, stands for no limit.
fn parse_budget(text: &str) -> Option<u64> {
    let number: f64 = text.trim_matches('"').trim().parse().ok()?;
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
            (
                r#""thinking_budget":"7e2""#,
                Some(("thinking_budget", Some(700))),
            ),
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
            // Some upstreams take the other case of a name, or the first of two.
            (
                r#""thinking":{"type":"disabled","Type":"enabled"}"#,
                Some(("thinking", None)),
            ),
            (
                r#""thinking":{"type":"enabled","type":"disabled"}"#,
                Some(("thinking", None)),
            ),
            (
                r#""thinking":{"type":"disabled","Budget_Tokens":30000}"#,
                Some(("thinking", None)),
            ),
            (
                r#""thinking":{"Type":"disabled"}"#,
                Some(("thinking", None)),
            ),
            (
                r#""reasoning":{"Max_Tokens":30000}"#,
                Some(("reasoning", None)),
            ),
            (
                r#""reasoning":{"max_tokens":1,"Max_Token\u0073":30000}"#,
                Some(("reasoning", None)),
            ),
            (
                r#""reasoning":{"max_tokens":1,"max_toKens":30000}"#,
                Some(("reasoning", None)),
            ),
            (
                r#""chat_template_kwargs":{"thinking_budget":5,"Thinking_Budget":60000,"enable_thinking":true}"#,
                Some(("chat_template_kwargs", None)),
            ),
            (
                r#""chat_template_kwargs":{"enable_thinking":false,"Enable_Thinking":true}"#,
                Some(("chat_template_kwargs", None)),
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

    #[test]
    fn the_largest_number_is_kept_where_nobody_knows_the_limit() {
        for fields in [
            r#""thinking":{"budget_tokens":5,"Budget_Tokens":900000}"#,
            r#""thinking":{"budget_tokens":900000,"budget_tokens":-1}"#,
            r#""enable_thinking":true,"reasoning":{"max_tokens":900000}"#,
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let findings = Format::Chat.codec().findings(body.as_bytes());
            let thinking = findings.extra_thinking.expect(fields);
            assert_eq!(
                (thinking.budget, thinking.named),
                (None, 900_000),
                "{fields}"
            );
        }
    }

    #[test]
    fn thinking_beyond_the_limit_of_a_message_is_found() {
        for (fields, found) in [
            (r#""max_tokens":9"#, None),
            (
                r#""max_tokens":9,"thinking":{"type":"enabled","budget_tokens":9}"#,
                None,
            ),
            (r#""max_tokens":9,"thinking":{"type":"adaptive"}"#, None),
            (r#""max_tokens":9,"thinking":{"type":"disabled"}"#, None),
            (
                r#""max_tokens":9,"thinking":{"type":"enabled","budget_tokens":10}"#,
                Some(Some(10)),
            ),
            (
                r#""thinking":{"type":"enabled","budget_tokens":2000}"#,
                Some(Some(2000)),
            ),
            (
                r#""max_tokens":9,"thinking":{"type":"enabled","budget_tokens":5,"Budget_Tokens":90}"#,
                Some(None),
            ),
            (
                r#""max_tokens":9,"thinking":{"type":"enabled","budget_tokens":-1}"#,
                Some(None),
            ),
            (
                r#""max_tokens":9,"thinking":{"type":"enabled","budget_tokens":"90"}"#,
                Some(Some(90)),
            ),
        ] {
            let body = format!(r#"{{"model":"m",{fields}}}"#);
            let findings = Format::Messages.codec().findings(body.as_bytes());
            let thinking = findings.extra_thinking.map(|thinking| thinking.budget);
            assert_eq!(thinking, found, "{fields}");
        }
        for name in ["Thinking", "thinKing"] {
            let body = format!(r#"{{"model":"m","max_tokens":9,"{name}":{{"budget_tokens":99}}}}"#);
            let findings = Format::Messages.codec().findings(body.as_bytes());
            assert!(findings.dearer_setting().is_err(), "{name}");
        }
    }
}
