//! Facts of a body: what it says, in words that can be compared across formats.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde_json::{Map, Value, json};

/// What a request says.
#[derive(Debug, Clone, Default)]
pub struct RequestFacts {
    /// Settings, system prompt and tools by name.
    pub settings: BTreeMap<String, String>,
    /// Turns in their order: who says what.
    pub conversation: Vec<String>,
    calls: Vec<HistoryCall>,
}

/// A call in the history of a request.
#[derive(Debug, Clone)]
struct HistoryCall {
    id: Option<String>,
    name: String,
    is_answered: bool,
}

/// What a response says.
#[derive(Debug, Clone, Default)]
pub struct ResponseFacts {
    pub facts: BTreeMap<String, String>,
    /// The ids of calls, to be unique and not empty.
    pub call_ids: Vec<String>,
}

impl RequestFacts {
    /// Notes a setting, unless it is absent.
    pub fn set(&mut self, name: &str, value: &Value) {
        let text = match value {
            Value::Null => return,
            Value::String(text) => text.clone(),
            other => canonical(other),
        };
        self.settings.insert(name.to_owned(), text);
    }

    /// Notes a tool.
    pub fn tool(&mut self, name: &str, description: &Value, schema: &Value) {
        let description = description.as_str().unwrap_or_default();
        let text = format!("{description} {}", canonical(&plain_schema(schema)));
        self.settings.insert(format!("tool {name}"), text);
    }

    /// Notes a text of a turn; what one role says in a row is one text.
    pub fn text(&mut self, role: &str, text: &str) {
        if text.is_empty() {
            return;
        }
        let start = format!("{role} says: ");
        match self.conversation.last_mut() {
            Some(last) if last.starts_with(&start) => {
                last.push('\n');
                last.push_str(text);
            }
            _ => self.conversation.push(start + text),
        }
    }

    /// Notes bytes of a turn.
    pub fn media(&mut self, role: &str, kind: &str, media: &str, data: &str) {
        let fact = format!("{role} sends {kind}: {media} {}", same_base64(data));
        self.conversation.push(fact);
    }

    /// Notes bytes of a data URL, or a URL.
    pub fn url(&mut self, role: &str, kind: &str, url: &str) {
        let data = url
            .strip_prefix("data:")
            .and_then(|rest| rest.split_once(";base64,"));
        match data {
            Some((media, data)) => self.media(role, kind, media, data),
            None => self
                .conversation
                .push(format!("{role} sends {kind}: {url}")),
        }
    }

    /// Notes a call of the history.
    pub fn call(&mut self, id: Option<&str>, name: &str, arguments: &Value) {
        self.calls.push(HistoryCall {
            id: id.map(str::to_owned),
            name: name.to_owned(),
            is_answered: false,
        });
        let number = self.calls.len();
        let arguments = canonical(&object_of(arguments));
        self.conversation
            .push(format!("assistant calls {number}: {name} {arguments}"));
    }

    /// Notes the result of a call: by its id, else the first that is open, by its name.
    pub fn result(&mut self, id: Option<&str>, name: Option<&str>, text: &str, is_error: bool) {
        let open = |call: &HistoryCall| !call.is_answered;
        let by_id = self
            .calls
            .iter()
            .position(|call| id.is_some() && call.id.as_deref() == id);
        let by_name = || {
            let of_name = |call: &HistoryCall| open(call) && Some(&*call.name) == name;
            self.calls.iter().position(of_name)
        };
        let found = by_id.or_else(by_name);
        if let Some(at) = found {
            self.calls[at].is_answered = true;
        }
        let number = found.map_or(0, |at| at + 1);
        let text = same_text(text);
        self.conversation
            .push(format!("result of call {number}: {text}"));
        if is_error {
            self.conversation.push(format!("call {number} failed"));
        }
    }

    /// How many calls have no result.
    pub fn unanswered(&self) -> usize {
        self.calls.iter().filter(|call| !call.is_answered).count()
    }

    /// Results without the field in which a native client says them: another format may have the object as it is.
    pub fn with_bare_results(mut self) -> RequestFacts {
        for fact in &mut self.conversation {
            let Some((start, text)) = fact
                .starts_with("result of call ")
                .then(|| fact.split_once(": "))
                .flatten()
            else {
                continue;
            };
            let object: Option<Map<String, Value>> = serde_json::from_str(text).ok();
            let only = object.filter(|fields| fields.len() == 1);
            let said = only.and_then(|fields| {
                let said = fields.get("output").or_else(|| fields.get("error"));
                said.and_then(Value::as_str).map(same_text)
            });
            if let Some(said) = said {
                *fact = format!("{start}: {said}");
            }
        }
        self
    }

    /// Removes the marks of the driver.
    pub fn without_mark(mut self, mark: &str) -> RequestFacts {
        for fact in &mut self.conversation {
            *fact = fact.replace(mark, "");
        }
        self
    }
}

impl ResponseFacts {
    pub fn set(&mut self, name: &str, value: impl Into<String>) {
        let value = value.into();
        if !value.is_empty() {
            self.facts.insert(name.to_owned(), value);
        }
    }

    /// Adds to a text.
    pub fn append(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.facts
                .entry(name.to_owned())
                .or_default()
                .push_str(text);
        }
    }

    /// Notes tokens; zero is as good as absent.
    pub fn tokens(&mut self, name: &str, count: u64) {
        if count > 0 {
            self.set(&format!("usage: {name}"), count.to_string());
        }
    }

    /// Notes a call.
    pub fn call(&mut self, id: Option<&str>, name: &str, arguments: &Value) {
        let number = self
            .facts
            .keys()
            .filter(|key| key.starts_with("call "))
            .count()
            + 1;
        let arguments = canonical(&object_of(arguments));
        self.set(&format!("call {number}"), format!("{name} {arguments}"));
        self.call_ids.extend(id.map(str::to_owned));
    }

    /// Notes what a source is named for.
    pub fn citation(&mut self, url: &str, quote: &str) {
        let number = self
            .facts
            .keys()
            .filter(|key| key.starts_with("citation "))
            .count()
            + 1;
        self.set(
            &format!("citation {number}"),
            format!("{url} for \"{quote}\""),
        );
    }

    pub fn has_calls(&self) -> bool {
        self.facts.contains_key("call 1")
    }
}

/// Arguments: an object, or the text of one.
fn object_of(arguments: &Value) -> Value {
    match arguments {
        Value::String(text) if text.trim().is_empty() => json!({}),
        Value::String(text) => serde_json::from_str(text).unwrap_or_else(|_| json!(text)),
        Value::Null => json!({}),
        other => other.clone(),
    }
}

/// A JSON object as text is the same in any layout.
fn same_text(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ Value::Object(_)) => canonical(&value),
        _ => text.to_owned(),
    }
}

/// The standard alphabet with padding.
fn same_base64(data: &str) -> String {
    let clean: String = data.split_whitespace().collect();
    let engines = [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD];
    let bytes = engines.iter().find_map(|engine| engine.decode(&clean).ok());
    bytes.map_or(clean, |bytes| STANDARD.encode(bytes))
}

/// JSON with sorted fields; 1.0 is 1.
pub fn canonical(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            let field = |name: &String| format!("{}:{}", json!(name), canonical(&fields[name]));
            let fields: Vec<String> = names.into_iter().map(field).collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(elements) => {
            let elements: Vec<String> = elements.iter().map(canonical).collect();
            format!("[{}]", elements.join(","))
        }
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 => format!("{float:.0}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// A schema without what formats spell in their own ways: the case of types, null, closed objects, dialects.
pub fn plain_schema(schema: &Value) -> Value {
    let Value::Object(fields) = schema else {
        return schema.clone();
    };
    let mut plain = Map::new();
    for (name, value) in fields {
        let value = match (name.as_str(), value) {
            ("additionalProperties" | "$schema" | "propertyOrdering" | "title" | "strict", _) => {
                continue;
            }
            ("type", Value::String(kind)) => json!(kind.to_lowercase()),
            ("type", Value::Array(kinds)) => {
                let is_null = |kind: &&Value| {
                    kind.as_str()
                        .is_some_and(|kind| kind.eq_ignore_ascii_case("null"))
                };
                if kinds.iter().any(|kind| is_null(&kind)) {
                    plain.insert("nullable".to_owned(), json!(true));
                }
                let kind = kinds.iter().find(|kind| !is_null(kind));
                json!(
                    kind.and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_lowercase()
                )
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties
                    .iter()
                    .map(|(name, schema)| (name.clone(), plain_schema(schema)));
                Value::Object(properties.collect())
            }
            ("properties", Value::Null) => continue,
            ("$defs", Value::Object(definitions)) if definitions.is_empty() => continue,
            ("items", items) => plain_schema(items),
            ("required", Value::Array(names)) if names.is_empty() => continue,
            ("required", Value::Array(names)) => {
                let mut names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                names.sort_unstable();
                json!(names)
            }
            ("nullable", Value::Bool(false)) => continue,
            (_, value) => value.clone(),
        };
        plain.insert(name.clone(), value);
    }
    if let Some(Value::Array(choices)) = plain.remove("anyOf") {
        let mut choices: Vec<Value> = choices.iter().map(plain_schema).collect();
        let count = choices.len();
        choices.retain(|choice| choice["type"] != "null");
        if choices.len() < count {
            plain.insert("nullable".to_owned(), json!(true));
        }
        match choices.as_slice() {
            [Value::Object(only)] => plain.extend(only.clone()),
            _ => {
                plain.insert("anyOf".to_owned(), Value::Array(choices));
            }
        }
    }
    if plain
        .get("properties")
        .is_some_and(|properties| *properties == json!({}))
    {
        plain.remove("properties");
    }
    Value::Object(plain)
}
