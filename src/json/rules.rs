//! Tables of rules for JSON objects: the type and range of each field, and which fields exclude each other.

use std::borrow::Cow;
use std::ops::Range;

use super::path::Path;
use crate::model::{ApiError, truncated};

/// What a value must be; `null` is always the same as absent.
#[derive(Debug)]
pub enum Rule {
    Text,
    Flag,
    Number(f64, f64),
    Whole(i64, i64),
    /// One of these words, in either case. An empty text, or a word that ends with [`UNSPECIFIED`], counts as absent.
    Word(&'static [&'static str]),
    /// A text that the function accepts, and the description of such a text.
    Form(fn(&str) -> bool, &'static str),
    List(&'static Rule),
    /// A list of at most so many.
    Few(&'static Rule, usize),
    Object(&'static ObjectRules),
    /// The inner rule, and the field is reported to the caller as [`NotedField`].
    Noted(&'static Rule),
}

/// The suffix of enum values that stand for "not set".
pub const UNSPECIFIED: &str = "_UNSPECIFIED";

#[derive(Debug)]
pub struct Field {
    /// The documented spelling comes first; errors name the spelling that the client wrote.
    pub spellings: &'static [&'static str],
    pub rule: Rule,
    pub required: bool,
}

/// The rules of an object: its known fields, and a check of their combination. Other fields are ignored.
#[derive(Debug)]
pub struct ObjectRules {
    fields: &'static [Field],
    required: Bits,
    conflict: fn(&PresentFields) -> Option<FieldConflict>,
}

/// One bit for every field of an object.
type Bits = u32;

const MOST_FIELDS: usize = Bits::BITS as usize;

/// The fields whose bits are set, in order.
fn each_of(mut bits: Bits) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (first < MOST_FIELDS).then_some(first)
    })
}

/// A combination of fields that is not allowed.
#[derive(Debug)]
pub struct FieldConflict {
    /// The documented spelling; `None`: the conflict is about the whole object.
    pub field: Option<&'static str>,
    pub expected: &'static str,
}

/// A field with the rule [`Rule::Noted`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedField {
    /// In the documented spelling.
    pub field: &'static str,
    pub path: String,
    /// The range of its name in the body, without the quotes; `None`: the name has escapes, or a tree
    /// was validated.
    pub name: Option<Range<usize>>,
}

/// A field of an object by its index, and the index of the spelling that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct KnownField {
    field: usize,
    spelling: usize,
}

impl ObjectRules {
    pub const fn new(
        fields: &'static [Field],
        conflict: fn(&PresentFields) -> Option<FieldConflict>,
    ) -> ObjectRules {
        assert!(fields.len() <= MOST_FIELDS);
        let (mut required, mut number) = (0, 0);
        while number < fields.len() {
            required |= (fields[number].required as Bits) << number;
            number += 1;
        }
        ObjectRules {
            fields,
            required,
            conflict,
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<KnownField> {
        for (field, known) in self.fields.iter().enumerate() {
            let spelling = known.spellings.iter().position(|known| *known == name);
            if let Some(spelling) = spelling {
                return Some(KnownField { field, spelling });
            }
        }
        None
    }
}

impl KnownField {
    pub(super) fn rule(self, rules: &ObjectRules) -> &'static Rule {
        &rules.fields[self.field].rule
    }

    pub(super) fn path<'p>(self, rules: &ObjectRules, parent: &'p Path<'p>) -> Path<'p> {
        Path::Key(parent, rules.fields[self.field].spellings[self.spelling])
    }

    /// The report about the field, where its rule asks for one.
    #[inline]
    pub(super) fn noted(
        self,
        rules: &ObjectRules,
        parent: &Path<'_>,
        name: impl FnOnce() -> Option<Range<usize>>,
    ) -> Option<NotedField> {
        let field = &rules.fields[self.field];
        matches!(field.rule, Rule::Noted(_)).then(|| NotedField {
            field: field.spellings[0],
            path: self.path(rules, parent).to_string(),
            name: name(),
        })
    }
}

/// The fields of an object that are present.
#[derive(Debug)]
pub struct PresentFields {
    rules: &'static ObjectRules,
    there: Bits,
    /// Only the entries of present fields are valid.
    seen: [SeenField; MOST_FIELDS],
}

#[derive(Debug, Clone, Copy)]
struct SeenField {
    spelling: u8,
    value: SeenValue,
}

/// What is remembered of a value: a word by its index in the rule, an object by the index of its only
/// field, a list by what all its elements have in common. One byte, as every object has an array of
/// them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SeenValue(u8);

impl SeenValue {
    pub(super) const OTHER: SeenValue = SeenValue(0);
    const TRUE: SeenValue = SeenValue(1);

    const fn word(number: u8) -> SeenValue {
        SeenValue(number + 2)
    }

    /// The index of a word or of an only field.
    fn number(self) -> Option<u8> {
        self.0.checked_sub(SeenValue::word(0).0)
    }

    /// The value of a list after its next element.
    pub(super) fn with_element(
        list: Option<SeenValue>,
        element: Option<SeenValue>,
    ) -> Option<SeenValue> {
        let element = element.unwrap_or(SeenValue::OTHER);
        match list {
            Some(value) if value != element => Some(SeenValue::OTHER),
            _ => Some(element),
        }
    }
}

impl PresentFields {
    pub(super) fn new(rules: &'static ObjectRules) -> PresentFields {
        let nothing = SeenField {
            spelling: 0,
            value: SeenValue::OTHER,
        };
        PresentFields {
            rules,
            there: 0,
            seen: [nothing; MOST_FIELDS],
        }
    }

    pub(super) fn add(&mut self, known: KnownField, value: SeenValue) {
        let spelling = known.spelling as u8;
        self.there |= 1 << known.field;
        self.seen[known.field] = SeenField { spelling, value };
    }

    fn there(&self) -> impl Iterator<Item = (&'static Field, SeenField)> {
        each_of(self.there).map(|number| (&self.rules.fields[number], self.seen[number]))
    }

    fn seen(&self, field: &str) -> Option<(&'static Field, SeenField)> {
        self.there().find(|(known, _)| known.spellings[0] == field)
    }

    pub fn has(&self, field: &str) -> bool {
        self.seen(field).is_some()
    }

    pub fn is_true(&self, field: &str) -> bool {
        let seen = self.seen(field);
        seen.is_some_and(|(_, seen)| seen.value == SeenValue::TRUE)
    }

    pub fn word(&self, field: &str) -> Option<&'static str> {
        let (field, seen) = self.seen(field)?;
        field.rule.word(seen.value.number()?)
    }

    /// The only field that an object has, or that every object of a list has.
    pub fn only_field(&self, field: &str) -> Option<&'static str> {
        let (field, seen) = self.seen(field)?;
        let known = field.rule.fields().get(usize::from(seen.value.number()?))?;
        Some(known.spellings[0])
    }

    /// What is remembered of this object.
    pub(super) fn value(&self) -> SeenValue {
        match self.there.is_power_of_two() {
            true => SeenValue::word(self.there.trailing_zeros() as u8),
            false => SeenValue::OTHER,
        }
    }

    /// The documented spellings of the present fields, in the order of the table.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.there().map(|(field, _)| field.spellings[0])
    }

    /// The error for a missing field or a conflict, once the whole object was seen.
    pub(super) fn api_error(&self, path: &Path<'_>) -> Option<ApiError> {
        if let Some(number) = each_of(self.rules.required & !self.there).next() {
            let path = Path::Key(path, self.rules.fields[number].spellings[0]).to_string();
            return Some(ApiError::invalid(format!("missing required field {path}")).at(path));
        }
        let clash = (self.rules.conflict)(self)?;
        let at = clash.field.map(|name| {
            let written = self.seen(name);
            let written = written.map(|(field, seen)| field.spellings[usize::from(seen.spelling)]);
            Path::Key(path, written.unwrap_or(name))
        });
        Some(at.as_ref().unwrap_or(path).wrong(clash.expected))
    }
}

/// A scalar of a body or of a tree; lists and objects answer `None`.
pub(super) trait ScalarValue {
    fn is_null(&self) -> bool;
    fn is_text(&self) -> bool;
    fn is_array(&self) -> bool;
    fn flag(&self) -> Option<bool>;
    fn number(&self) -> Option<f64>;
    /// An integer, which may also be written `40.0`.
    fn whole(&self) -> Option<i64>;
    fn text(&self) -> Option<Cow<'_, str>>;

    /// The description of what was seen, for an error.
    fn description(&self) -> String {
        match (self.flag(), self.number(), self.text()) {
            (Some(flag), ..) => flag.to_string(),
            (_, Some(number), _) => number.to_string(),
            (_, _, Some(text)) => format!("{:?}", truncated(&text)),
            _ if self.is_array() => "an array".to_owned(),
            _ => "an object".to_owned(),
        }
    }
}

pub(super) fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0).then_some(number as i64)
}

impl Rule {
    /// The description of such a value in error messages.
    fn name(&self) -> Cow<'static, str> {
        match self {
            Rule::Text => "a string".into(),
            Rule::Flag => "true or false".into(),
            Rule::Number(least, most) => format!("a number from {least} to {most}").into(),
            Rule::Whole(least, i64::MAX) => format!("an integer of at least {least}").into(),
            Rule::Whole(least, most) => format!("an integer from {least} to {most}").into(),
            Rule::Word(words) => format!("one of {}", words.join(", ")).into(),
            Rule::Form(_, words) => (*words).into(),
            Rule::List(_) | Rule::Few(..) => "an array".into(),
            Rule::Object(_) => "an object".into(),
            Rule::Noted(rule) => rule.name(),
        }
    }

    fn word(&self, number: u8) -> Option<&'static str> {
        match self {
            Rule::Word(words) => words.get(usize::from(number)).copied(),
            Rule::Noted(rule) => rule.word(number),
            _ => None,
        }
    }

    /// The known fields of an object, or of the objects of a list.
    fn fields(&self) -> &'static [Field] {
        match self {
            Rule::Object(rules) => rules.fields,
            Rule::List(rule) | Rule::Few(rule, _) | Rule::Noted(rule) => rule.fields(),
            _ => &[],
        }
    }

    #[cold]
    pub(super) fn violation(&self, path: &Path<'_>, got: &str) -> ApiError {
        path.wrong(&format!("{}, got {got}", self.name()))
    }

    #[cold]
    pub(super) fn too_many(most: usize, path: &Path<'_>) -> ApiError {
        path.wrong(&format!("at most {most} of them"))
    }

    /// Validates a scalar; `None`: it counts as absent.
    pub(super) fn validate_scalar(
        &self,
        value: &impl ScalarValue,
        path: &Path<'_>,
    ) -> Result<Option<SeenValue>, ApiError> {
        if value.is_null() {
            return Ok(None);
        }
        let other = |found: bool| found.then_some(SeenValue::OTHER);
        let found = match self {
            Rule::Text => other(value.is_text()),
            Rule::Flag => value.flag().map(|flag| match flag {
                true => SeenValue::TRUE,
                false => SeenValue::OTHER,
            }),
            Rule::Number(least, most) => {
                let number = value.number();
                other(number.is_some_and(|number| (*least..=*most).contains(&number)))
            }
            Rule::Whole(least, most) => {
                let number = value.whole();
                other(number.is_some_and(|number| (*least..=*most).contains(&number)))
            }
            Rule::Word(words) => match value.text() {
                Some(value) if value.is_empty() || value.ends_with(UNSPECIFIED) => return Ok(None),
                value => {
                    let value = value.unwrap_or_default();
                    let mut words = (0..).zip(*words);
                    let word = words.find(|(_, word)| word.eq_ignore_ascii_case(&value));
                    word.map(|(number, _)| SeenValue::word(number))
                }
            },
            Rule::Form(takes, _) => other(value.text().is_some_and(|value| takes(&value))),
            Rule::List(_) | Rule::Few(..) | Rule::Object(_) | Rule::Noted(_) => None,
        };
        match found {
            Some(value) => Ok(Some(value)),
            None => Err(self.violation(path, &value.description())),
        }
    }
}
