//! Holding a body against a table of rules while it is read: no tree is built, no long text copied.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::Path;
use super::shape::{Given, Known, NotedField, ObjectRules, PresentFields, Rule, Value, whole};
use crate::model::{ApiError, truncated};

/// Reads a whole body. `Err`: it is no JSON object, or breaks a rule; the first breach is named.
pub fn validate(body: &[u8], shape: &'static ObjectRules) -> Result<Vec<NotedField>, ApiError> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    let mut found = Found {
        body,
        noted: Vec::new(),
        api_error: None,
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let rule = Rule::Object(shape);
    let seed = Check {
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

struct Found<'b> {
    body: &'b [u8],
    noted: Vec<NotedField>,
    /// The parser's own errors carry nothing but text.
    api_error: Option<ApiError>,
}

impl Found<'_> {
    fn stop<E: serde::de::Error>(&mut self, api_error: ApiError) -> E {
        self.api_error = Some(api_error);
        E::custom("a rule is broken")
    }
}

/// One value on its way past its rule; `None` comes out where it counts as absent.
struct Check<'r, 'p, 'f, 'b> {
    rule: &'r Rule,
    path: &'p Path<'p>,
    found: &'f mut Found<'b>,
}

impl<'de> DeserializeSeed<'de> for Check<'_, '_, '_, '_> {
    type Value = Option<Value>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<Value>, D::Error> {
        match self.rule {
            Rule::List(_) | Rule::Few(..) | Rule::Object(_) => reader.deserialize_any(self),
            Rule::Noted(rule) => Check { rule, ..self }.deserialize(reader),
            leaf => {
                let raw = <&RawValue>::deserialize(reader)?;
                leaf.hold(&raw.get(), self.path)
                    .map_err(|api_error| self.found.stop(api_error))
            }
        }
    }
}

/// As it is written.
impl Given for &str {
    fn is_null(&self) -> bool {
        *self == "null"
    }

    fn is_text(&self) -> bool {
        self.starts_with('"')
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

    /// Copied only where it is written with escapes.
    fn text(&self) -> Option<Cow<'_, str>> {
        let inner = self.strip_prefix('"')?.strip_suffix('"')?;
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Some(Cow::Borrowed(inner));
        }
        serde_json::from_str(self).ok().map(Cow::Owned)
    }
}

impl<'de> Visitor<'de> for Check<'_, '_, '_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("what the rules expect")
    }

    fn visit_unit<E>(self) -> Result<Option<Value>, E> {
        Ok(None)
    }

    fn visit_bool<E: serde::de::Error>(self, _: bool) -> Result<Option<Value>, E> {
        Err(self.wrong_kind())
    }

    fn visit_i64<E: serde::de::Error>(self, _: i64) -> Result<Option<Value>, E> {
        Err(self.wrong_kind())
    }

    fn visit_u64<E: serde::de::Error>(self, _: u64) -> Result<Option<Value>, E> {
        Err(self.wrong_kind())
    }

    fn visit_f64<E: serde::de::Error>(self, _: f64) -> Result<Option<Value>, E> {
        Err(self.wrong_kind())
    }

    fn visit_str<E: serde::de::Error>(self, _: &str) -> Result<Option<Value>, E> {
        Err(self.wrong_kind())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Option<Value>, A::Error> {
        let (rule, most) = match self.rule {
            Rule::List(rule) => (rule, usize::MAX),
            Rule::Few(rule, most) => (rule, *most),
            _ => return Err(self.wrong_kind()),
        };
        let mut count = 0;
        loop {
            let path = Path::Index(self.path, count);
            let seed = Check {
                rule,
                path: &path,
                found: self.found,
            };
            if items.next_element_seed(seed)?.is_none() {
                return Ok(Some(Value::OTHER));
            }
            count += 1;
            if count > most {
                return Err(self.found.stop(Rule::too_many(most, self.path)));
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Option<Value>, A::Error> {
        let Rule::Object(shape) = *self.rule else {
            return Err(self.wrong_kind());
        };
        let mut seen = PresentFields::new(shape);
        let name = Name {
            shape,
            body: self.found.body,
        };
        while let Some(name) = entries.next_key_seed(name)? {
            let Some((known, place)) = name else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let path = known.path(shape, self.path);
            let seed = Check {
                rule: known.rule(shape),
                path: &path,
                found: self.found,
            };
            if let Some(value) = entries.next_value_seed(seed)? {
                let noted = known.noted(shape, self.path, place);
                self.found.noted.extend(noted);
                seen.note(known, value);
            }
        }
        match seen.api_error(self.path) {
            Some(api_error) => Err(self.found.stop(api_error)),
            None => Ok(Some(Value::OTHER)),
        }
    }
}

impl Check<'_, '_, '_, '_> {
    fn wrong_kind<E: serde::de::Error>(self) -> E {
        let api_error = self.rule.broken(self.path);
        self.found.stop(api_error)
    }
}

/// Finds the name of a field in the table, and where it stands.
#[derive(Clone, Copy)]
struct Name<'b> {
    shape: &'static ObjectRules,
    body: &'b [u8],
}

type Placed = Option<(Known, Option<Range<usize>>)>;

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Placed;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Placed, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'_> {
    type Value = Placed;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Placed, E> {
        Ok(self.shape.find(name).map(|known| (known, None)))
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Placed, E> {
        let start = (name.as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        let place = start..start + name.len();
        Ok(self.shape.find(name).map(|known| (known, Some(place))))
    }
}
