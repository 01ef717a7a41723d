//! Validates a body against a table of rules while it is read: no tree is built, no long text is copied.

use std::borrow::Cow;
use std::ops::Range;

use super::path::Path;
use super::reader::{DecodeResult, DecodeStopped, JsonReader};
use super::rules::{NotedField, ObjectRules, PresentFields, Rule, ScalarValue, SeenValue, whole};
use crate::model::ApiError;

/// Validates a whole body. `Err`: it is no JSON object, or the named field breaks a rule.
pub fn validate(body: &[u8], rules: &'static ObjectRules) -> Result<Vec<NotedField>, ApiError> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(ApiError::invalid("the body must be a JSON object"));
    }
    let not_json = |why: String| ApiError::invalid(format!("the body is not valid JSON: {why}"));
    let text = str::from_utf8(body).map_err(|error| not_json(error.to_string()))?;
    let mut reader = JsonReader::new(text);
    let mut validation = Validation {
        text,
        noted: Vec::new(),
        api_error: None,
    };
    let read = validation.object(&mut reader, rules, &Path::Root);
    match (validation.api_error, read.and_then(|_| reader.end())) {
        (Some(api_error), _) => Err(api_error),
        (None, Ok(())) => Ok(validation.noted),
        (None, Err(_)) => Err(not_json(reader.problem().to_string())),
    }
}

struct Validation<'a> {
    text: &'a str,
    noted: Vec<NotedField>,
    /// Set when a rule is broken: the reader only knows what it expected.
    api_error: Option<ApiError>,
}

/// Each method returns `None` where the value counts as absent.
impl<'a> Validation<'a> {
    fn value(
        &mut self,
        reader: &mut JsonReader<'a>,
        rule: &'static Rule,
        path: &Path<'_>,
    ) -> DecodeResult<Option<SeenValue>> {
        match (rule, reader.peek()) {
            (Rule::Noted(rule), _) => self.value(reader, rule, path),
            (Rule::Object(rules), Some(b'{')) => self.object(reader, rules, path),
            (Rule::List(rule), Some(b'[')) => self.list(reader, (rule, usize::MAX), path),
            (Rule::Few(rule, most), Some(b'[')) => self.list(reader, (rule, *most), path),
            _ => {
                let scalar = reader.raw()?;
                let seen = rule.validate_scalar(&scalar, path);
                seen.map_err(|api_error| self.stop(reader, api_error))
            }
        }
    }

    fn list(
        &mut self,
        reader: &mut JsonReader<'a>,
        (rule, most): (&'static Rule, usize),
        path: &Path<'_>,
    ) -> DecodeResult<Option<SeenValue>> {
        let (mut count, mut value) = (0, None);
        reader.array(|reader| {
            let element = self.value(reader, rule, &Path::Index(path, count))?;
            value = SeenValue::with_element(value, element);
            count += 1;
            match count > most {
                true => Err(self.stop(reader, Rule::too_many(most, path))),
                false => Ok(()),
            }
        })?;
        Ok(value.or(Some(SeenValue::OTHER)))
    }

    fn object(
        &mut self,
        reader: &mut JsonReader<'a>,
        rules: &'static ObjectRules,
        path: &Path<'_>,
    ) -> DecodeResult<Option<SeenValue>> {
        let mut present = PresentFields::new(rules);
        reader.entries(|reader, name| {
            let Some(known) = rules.find(&name) else {
                return reader.skip();
            };
            let field = known.path(rules, path);
            if let Some(value) = self.value(reader, known.rule(rules), &field)? {
                // A name with escapes stands elsewhere.
                let range = || match &name {
                    Cow::Borrowed(name) => range_in(self.text, name),
                    Cow::Owned(_) => None,
                };
                self.noted.extend(known.noted(rules, path, range));
                present.add(known, value);
            }
            Ok(())
        })?;
        match present.api_error(path) {
            Some(api_error) => Err(self.stop(reader, api_error)),
            None => Ok(Some(present.value())),
        }
    }

    #[cold]
    fn stop(&mut self, reader: &mut JsonReader<'a>, api_error: ApiError) -> DecodeStopped {
        self.api_error = Some(api_error);
        reader.stop("what the rules allow")
    }
}

/// Where a name stands in the text.
fn range_in(text: &str, name: &str) -> Option<Range<usize>> {
    let start = (name.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    Some(start..start + name.len())
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
