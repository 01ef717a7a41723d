//! Validates a body against a table of rules while it is parsed: no tree is built, no long text is copied.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::path::Path;
use super::rules::{
    KnownField, NotedField, ObjectRules, PresentFields, Rule, ScalarValue, SeenValue, whole,
};
use crate::model::{ApiError, truncated};

/// Validates a whole body. `Err`: it is no JSON object, or the named field breaks a rule.
pub fn validate(body: &[u8], rules: &'static ObjectRules) -> Result<Vec<NotedField>, ApiError> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    let mut found = Validation {
        body,
        noted: Vec::new(),
        api_error: None,
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let rule = Rule::Object(rules);
    let seed = Validator {
        rule: &rule,
        path: &Path::Root,
        found: &mut found,
    };
    let read = seed.deserialize(&mut reader).map(drop);
    match (read.and_then(|()| reader.end()), found.api_error) {
        (Ok(()), None) => Ok(found.noted),
        (_, Some(api_error)) => Err(api_error),
        (Err(error), None) => {
            let reason = error.to_string();
            let reason = truncated(&reason);
            Err(ApiError::invalid(format!(
                "the body is not valid JSON: {reason}"
            )))
        }
    }
}

struct Validation<'b> {
    body: &'b [u8],
    noted: Vec<NotedField>,
    /// Set when a rule is broken: errors of the parser carry nothing but text.
    api_error: Option<ApiError>,
}

impl Validation<'_> {
    fn stop<E: serde::de::Error>(&mut self, api_error: ApiError) -> E {
        self.api_error = Some(api_error);
        E::custom("a rule is violated")
    }
}

/// Validates one value against its rule; the result is `None` where the value counts as absent.
struct Validator<'r, 'p, 'f, 'b> {
    rule: &'r Rule,
    path: &'p Path<'p>,
    found: &'f mut Validation<'b>,
}

impl<'de> DeserializeSeed<'de> for Validator<'_, '_, '_, '_> {
    type Value = Option<SeenValue>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<SeenValue>, D::Error> {
        match self.rule {
            Rule::List(_) | Rule::Few(..) | Rule::Object(_) => reader.deserialize_any(self),
            Rule::Noted(rule) => Validator { rule, ..self }.deserialize(reader),
            leaf => {
                let raw = <&RawValue>::deserialize(reader)?;
                leaf.validate_scalar(&raw.get(), self.path)
                    .map_err(|api_error| self.found.stop(api_error))
            }
        }
    }
}

/// A scalar as it is written in the body.
impl ScalarValue for &str {
    fn is_null(&self) -> bool {
        *self == "null"
    }

    fn is_text(&self) -> bool {
        self.starts_with('"')
    }

    fn is_array(&self) -> bool {
        self.starts_with('[')
    }

    fn flag(&self) -> Option<bool> {
        self.parse().ok()
    }

    fn number(&self) -> Option<f64> {
        self.parse().ok()
    }

    fn whole(&self) -> Option<i64> {
        self.parse().ok().or_else(|| whole(self.number()?))
    }

    /// The text is copied only where it has escapes.
    fn text(&self) -> Option<Cow<'_, str>> {
        let inner = self.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        serde_json::from_str(self).ok().map(Cow::Owned)
    }
}

impl<'de> Visitor<'de> for Validator<'_, '_, '_, '_> {
    type Value = Option<SeenValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("what the rules expect")
    }

    fn visit_unit<E>(self) -> Result<Option<SeenValue>, E> {
        Ok(None)
    }

    fn visit_bool<E: serde::de::Error>(self, flag: bool) -> Result<Option<SeenValue>, E> {
        Err(self.wrong_kind(&flag.to_string()))
    }

    fn visit_i64<E: serde::de::Error>(self, number: i64) -> Result<Option<SeenValue>, E> {
        Err(self.wrong_kind(&(number as f64).to_string()))
    }

    fn visit_u64<E: serde::de::Error>(self, number: u64) -> Result<Option<SeenValue>, E> {
        Err(self.wrong_kind(&(number as f64).to_string()))
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<Option<SeenValue>, E> {
        Err(self.wrong_kind(&number.to_string()))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Option<SeenValue>, E> {
        Err(self.wrong_kind(&format!("{:?}", truncated(text))))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<SeenValue>, A::Error> {
        let (rule, most) = match self.rule {
            Rule::List(rule) => (rule, usize::MAX),
            Rule::Few(rule, most) => (rule, *most),
            _ => return Err(self.wrong_kind("an array")),
        };
        let (mut count, mut value) = (0, None);
        loop {
            let path = Path::Index(self.path, count);
            let seed = Validator {
                rule,
                path: &path,
                found: self.found,
            };
            let Some(element) = items.next_element_seed(seed)? else {
                return Ok(value.or(Some(SeenValue::OTHER)));
            };
            value = SeenValue::with_element(value, element);
            count += 1;
            if count > most {
                return Err(self.found.stop(Rule::too_many(most, self.path)));
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Option<SeenValue>, A::Error> {
        let Rule::Object(rules) = *self.rule else {
            return Err(self.wrong_kind("an object"));
        };
        let mut present = PresentFields::new(rules);
        let name = FieldName {
            rules,
            body: self.found.body,
        };
        while let Some(name) = entries.next_key_seed(name)? {
            let Some((known, range)) = name else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let path = known.path(rules, self.path);
            let seed = Validator {
                rule: known.rule(rules),
                path: &path,
                found: self.found,
            };
            if let Some(value) = entries.next_value_seed(seed)? {
                let noted = known.noted(rules, self.path, range);
                self.found.noted.extend(noted);
                present.add(known, value);
            }
        }
        match present.api_error(self.path) {
            Some(api_error) => Err(self.found.stop(api_error)),
            None => Ok(Some(present.value())),
        }
    }
}

impl Validator<'_, '_, '_, '_> {
    fn wrong_kind<E: serde::de::Error>(self, got: &str) -> E {
        let api_error = self.rule.violation(self.path, got);
        self.found.stop(api_error)
    }
}

/// Finds a field name in the table, and its range in the body.
#[derive(Clone, Copy)]
struct FieldName<'b> {
    rules: &'static ObjectRules,
    body: &'b [u8],
}

type FoundField = Option<(KnownField, Option<Range<usize>>)>;

impl<'de> DeserializeSeed<'de> for FieldName<'_> {
    type Value = FoundField;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<FoundField, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for FieldName<'_> {
    type Value = FoundField;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<FoundField, E> {
        Ok(self.rules.find(name).map(|known| (known, None)))
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<FoundField, E> {
        let start = (name.as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        let range = start..start + name.len();
        Ok(self.rules.find(name).map(|known| (known, Some(range))))
    }
}
