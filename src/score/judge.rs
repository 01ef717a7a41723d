//! Compares what was said with what arrived, and knows what a format can say at all.

use super::facts::{RequestFacts, ResponseFacts};
use super::said::{SaidPart, SaidRequest};
use super::wire::WireFormat;

/// What was found in one run.
#[derive(Debug, Clone, Default)]
pub struct Verdict {
    /// What was lost, changed or added.
    pub losses: Vec<String>,
    /// Where gateways may differ, and this one does: not counted.
    pub opinions: Vec<String>,
    /// A request came to the upstream, in its format.
    pub has_arrived: bool,
}

/// Whether a format can say a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carry {
    Yes,
    No,
    /// Versions of the format, or its compatible providers, differ.
    Disputed,
}

impl Verdict {
    pub fn lose(&mut self, what: impl Into<String>) {
        self.losses.push(what.into());
    }

    fn note(&mut self, carry: Carry, what: String) {
        match carry {
            Carry::Yes => self.losses.push(what),
            Carry::Disputed => self.opinions.push(what),
            Carry::No => {}
        }
    }
}

/// Whether requests of a format have a field for a setting.
fn request_carry(format: WireFormat, setting: &str) -> Carry {
    use WireFormat::{Chat, Messages, Native, Responses};
    match (setting, format) {
        // The newest version of the messages format has removed them.
        ("temperature" | "top-p" | "top-k", Messages) => Carry::Disputed,
        // The vendor's newest models refuse them, and gateways that know the models drop them.
        ("temperature" | "top-p", Responses) => Carry::Disputed,
        ("top-k", Chat | Responses) => Carry::No,
        ("seed" | "presence penalty" | "frequency penalty", Messages | Responses) => Carry::No,
        ("stop sequences", Responses) => Carry::No,
        ("one call at a time" | "end user", Native) => Carry::No,
        ("name of the output schema", Messages | Native) => Carry::No,
        _ => Carry::Yes,
    }
}

/// Whether responses of a format have a field for a fact.
fn response_carry(client: WireFormat, upstream: WireFormat, fact: &str) -> Carry {
    let is_chat = client == WireFormat::Chat || upstream == WireFormat::Chat;
    match fact {
        // The chat format has no field for it; its compatible providers have several.
        "reasoning" if is_chat => Carry::Disputed,
        "usage: cache writes" if client == WireFormat::Native => Carry::No,
        "usage: cache writes" | "usage: reasoning" if client == WireFormat::Messages || is_chat => {
            Carry::Disputed
        }
        _ if fact.starts_with("citation") && client == WireFormat::Messages => Carry::No,
        _ => Carry::Yes,
    }
}

/// Whether a client of the format can say this at all.
pub fn can_say(client: WireFormat, said: &SaidRequest) -> bool {
    use WireFormat::{Chat, Messages, Native, Responses};
    let has_audio = said
        .user_parts()
        .any(|part| matches!(part, SaidPart::Audio(_)));
    let has_result_image = said.results().any(|result| result.image.is_some());
    match client {
        Messages | Responses if has_audio => false,
        Chat | Native if has_result_image => false,
        Messages => said
            .calls()
            .all(|call| call.id.chars().all(is_letter_of_an_id)),
        Responses => said.calls().all(|call| call.id.len() <= 64),
        _ => true,
    }
}

/// Ids of the messages format have these letters only.
fn is_letter_of_an_id(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-')
}

/// Whether the upstream's format has no words for the content: the gateway must refuse it, not drop it.
pub fn must_refuse(upstream: WireFormat, said: &SaidRequest) -> bool {
    let has_audio = said
        .user_parts()
        .any(|part| matches!(part, SaidPart::Audio(_)));
    has_audio && matches!(upstream, WireFormat::Messages | WireFormat::Responses)
}

/// Compares a request as its client sent it with what the upstream received.
pub fn compare_requests(
    (client, sent): (WireFormat, &RequestFacts),
    (upstream, received): (WireFormat, &RequestFacts),
    verdict: &mut Verdict,
) {
    let has_no_tools = !received
        .settings
        .keys()
        .any(|name| name.starts_with("tool "));
    let forbids_tools = sent
        .settings
        .get("tool choice")
        .is_some_and(|choice| choice == "none");
    for (name, value) in &sent.settings {
        // Without tools there is nothing to choose.
        if forbids_tools && has_no_tools && name.starts_with("tool ") {
            continue;
        }
        let carry = match (client == upstream, request_carry(upstream, name)) {
            (true, Carry::No) => Carry::Yes,
            (_, carry) => carry,
        };
        match received.settings.get(name) {
            None => verdict.note(carry, format!("request: {name} lost ({})", short(value))),
            // How many tokens an effort is, is a matter of taste.
            Some(arrived) if name == "effort" && (arrived == "on" || value == "on") => {}
            Some(arrived) if arrived != value => {
                let change = format!(
                    "request: {name} was {}, became {}",
                    short(value),
                    short(arrived)
                );
                // Leaving a setting out may be a matter of taste; changing its value is not.
                verdict.note(
                    match carry {
                        Carry::No => Carry::No,
                        _ => Carry::Yes,
                    },
                    change,
                );
            }
            Some(_) => {}
        }
    }
    let turns = expected_turns(upstream, sent);
    // Words that tell the model what a moved image is are a matter of taste.
    let has_moved =
        turns != sent.conversation && turns.iter().any(|fact| fact.contains("sends image"));
    compare_conversations(&turns, &received.conversation, has_moved, verdict);
}

/// The turns as the upstream's format can say them.
fn expected_turns(upstream: WireFormat, sent: &RequestFacts) -> Vec<String> {
    use WireFormat::{Chat, Native, Responses};
    let turns = sent.conversation.iter();
    let turns = turns.filter(|fact| {
        let is_flag = fact.starts_with("call ") && fact.ends_with(" failed");
        !(is_flag && matches!(upstream, Chat | Responses))
    });
    // Results of these formats are text: images follow as the user's.
    let turns = turns.map(|fact| match (upstream, fact.strip_prefix("tool sends ")) {
        (Chat | Native, Some(rest)) => format!("user sends {rest}"),
        _ => fact.clone(),
    });
    turns.collect()
}

fn compare_conversations(
    expected: &[String],
    received: &[String],
    has_moved: bool,
    verdict: &mut Verdict,
) {
    let mut left = received.to_vec();
    let mut is_complete = true;
    for fact in expected {
        match left.iter().position(|other| other == fact) {
            Some(at) => {
                left.remove(at);
            }
            None => {
                is_complete = false;
                verdict.lose(format!("request: lost: {}", short(fact)));
            }
        }
    }
    for fact in &left {
        let carry = match has_moved && fact.starts_with("user says: ") {
            true => Carry::Disputed,
            false => Carry::Yes,
        };
        verdict.note(carry, format!("request: added: {}", short(fact)));
    }
    let mut kept = received.to_vec();
    for fact in &left {
        if let Some(at) = kept.iter().rposition(|other| other == fact) {
            kept.remove(at);
        }
    }
    if is_complete && expected != kept {
        verdict.lose("request: the order of the turns changed");
    }
}

/// Compares a response as the upstream sent it with what the client read.
pub fn compare_responses(
    (upstream, sent): (WireFormat, &ResponseFacts),
    (client, read): (WireFormat, &ResponseFacts),
    verdict: &mut Verdict,
) {
    for (name, value) in &sent.facts {
        let carry = match client == upstream {
            true => Carry::Yes,
            false => response_carry(client, upstream, name),
        };
        match read.facts.get(name) {
            None => verdict.note(carry, format!("response: {name} lost ({})", short(value))),
            Some(arrived)
                if name == "finish" && client != upstream && same_finish(value, arrived) => {}
            Some(arrived) if arrived != value => {
                let change = format!(
                    "response: {name} was {}, became {}",
                    short(value),
                    short(arrived)
                );
                verdict.note(carry, change);
            }
            Some(_) => {}
        }
    }
    for (name, value) in &read.facts {
        let counts = name.starts_with("call ") || name == "text" || name.starts_with("citation");
        if counts && !sent.facts.contains_key(name) {
            verdict.lose(format!("response: added: {name} ({})", short(value)));
        }
    }
    let mut ids = read.call_ids.clone();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() < read.call_ids.len() || ids.iter().any(String::is_empty) {
        verdict.lose("response: calls have no ids of their own");
    }
}

/// Only one format tells a stop sequence, and a refusal in words has no reason of its own everywhere.
fn same_finish(sent: &str, read: &str) -> bool {
    match sent {
        "stop sequence" => matches!(read, "stop sequence" | "end"),
        "refusal" => matches!(read, "refusal" | "filtered" | "end"),
        "filtered" => matches!(read, "filtered" | "refusal"),
        sent => sent == read,
    }
}

/// A value that fits into a line.
pub fn short(value: &str) -> String {
    const LENGTH: usize = 100;
    let line: String = value
        .chars()
        .take(LENGTH)
        .collect::<String>()
        .replace('\n', "\\n");
    match value.chars().count() > LENGTH {
        true => format!("{line}… ({} characters)", value.chars().count()),
        false => line,
    }
}
