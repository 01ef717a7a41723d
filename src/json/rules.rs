//! A table of rules that JSON is held against: what values must be, and what beside what.

use std::borrow::Cow;
use std::ops::Range;

use super::fields::Path;
use crate::model::ApiError;

/// What a value must be. `null` is the same as absent, everywhere.
#[derive(Debug)]
pub enum Rule {
    Text,
    Flag,
    Number(f64, f64),
    Whole(i64, i64),
    /// One of these, in either case. Nothing, or a word that ends like this, counts as absent.
    Word(&'static [&'static str]),
    /// A text that the function takes, and the words for such a text.
    Form(fn(&str) -> bool, &'static str),
    List(&'static Rule),
    /// A list of at most so many.
    Few(&'static Rule, usize),
    Object(&'static ObjectRules),
    /// The rule inside holds, and whoever checks is told of the field.
    Noted(&'static Rule),
}

/// What words end in that say nothing.
pub const UNSPECIFIED: &str = "_UNSPECIFIED";

#[derive(Debug)]
pub struct Field {
    /// The documented spelling first; errors name the one that was written.
    pub spellings: &'static [&'static str],
    pub rule: Rule,
    pub required: bool,
}

/// An object: the fields that have rules, and what they must be beside each other. Others are
/// not looked at.
#[derive(Debug)]
pub struct ObjectRules {
    fields: &'static [Field],
    required: Bits,
    beside: fn(&PresentFields) -> Option<FieldConflict>,
}

/// One for every field of a shape.
type Bits = u32;

const MOST_FIELDS: usize = Bits::BITS as usize;

/// The fields whose bits are set, the first one first.
fn each_of(mut bits: Bits) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let first = bits.trailing_zeros() as usize;
        bits &= bits.wrapping_sub(1);
        (first < MOST_FIELDS).then_some(first)
    })
}

/// Fields that cannot stand together.
#[derive(Debug)]
pub struct FieldConflict {
    /// The documented spelling; `None`: it is the whole object.
    pub field: Option<&'static str>,
    pub expected: &'static str,
}

/// A field with the rule [`Rule::Noted`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotedField {
    /// In the documented spelling.
    pub field: &'static str,
    pub path: String,
    /// Where its name stands in the body, without the quotes; `None`: it is written with escapes,
    /// or a tree was held that knows nothing of its body.
    pub name: Option<Range<usize>>,
}

/// A field of a shape, by its number and that of the spelling that was written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    field: usize,
    spelling: usize,
}

impl ObjectRules {
    pub const fn new(
        fields: &'static [Field],
        beside: fn(&PresentFields) -> Option<FieldConflict>,
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
            beside,
        }
    }

    pub(super) fn find(&self, name: &str) -> Option<Known> {
        for (field, known) in self.fields.iter().enumerate() {
            let spelling = known.spellings.iter().position(|known| *known == name);
            if let Some(spelling) = spelling {
                return Some(Known { field, spelling });
            }
        }
        None
    }
}

impl Known {
    pub(super) fn rule(self, shape: &ObjectRules) -> &'static Rule {
        &shape.fields[self.field].rule
    }

    pub(super) fn path<'p>(self, shape: &ObjectRules, parent: &'p Path<'p>) -> Path<'p> {
        Path::Key(parent, shape.fields[self.field].spellings[self.spelling])
    }

    /// What whoever checks is to be told of the field, if anything.
    #[inline]
    pub(super) fn noted(
        self,
        shape: &ObjectRules,
        parent: &Path<'_>,
        name: Option<Range<usize>>,
    ) -> Option<NotedField> {
        let field = &shape.fields[self.field];
        matches!(field.rule, Rule::Noted(_)).then(|| NotedField {
            field: field.spellings[0],
            path: self.path(shape, parent).to_string(),
            name,
        })
    }
}

/// Which fields of an object were there.
#[derive(Debug)]
pub struct PresentFields {
    shape: &'static ObjectRules,
    there: Bits,
    /// Of fields that are not there they say nothing.
    sights: [Sight; MOST_FIELDS],
}

#[derive(Debug, Clone, Copy)]
struct Sight {
    spelling: u8,
    value: Value,
}

/// What is kept of a value: a word by its number in the rule. Small and zero at first, as every
/// object has room for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Value(u8);

impl Value {
    pub(super) const OTHER: Value = Value(0);
    const TRUE: Value = Value(1);

    const fn word(number: u8) -> Value {
        Value(number + 2)
    }
}

impl PresentFields {
    pub(super) fn new(shape: &'static ObjectRules) -> PresentFields {
        let nothing = Sight {
            spelling: 0,
            value: Value::OTHER,
        };
        PresentFields {
            shape,
            there: 0,
            sights: [nothing; MOST_FIELDS],
        }
    }

    pub(super) fn note(&mut self, known: Known, value: Value) {
        let spelling = known.spelling as u8;
        self.there |= 1 << known.field;
        self.sights[known.field] = Sight { spelling, value };
    }

    fn there(&self) -> impl Iterator<Item = (&'static Field, Sight)> {
        each_of(self.there).map(|number| (&self.shape.fields[number], self.sights[number]))
    }

    fn sight(&self, field: &str) -> Option<(&'static Field, Sight)> {
        self.there().find(|(known, _)| known.spellings[0] == field)
    }

    pub fn has(&self, field: &str) -> bool {
        self.sight(field).is_some()
    }

    pub fn is_true(&self, field: &str) -> bool {
        let sight = self.sight(field);
        sight.is_some_and(|(_, sight)| sight.value == Value::TRUE)
    }

    pub fn word(&self, field: &str) -> Option<&'static str> {
        let (field, sight) = self.sight(field)?;
        let number = sight.value.0.checked_sub(Value::word(0).0)?;
        field.rule.word(number)
    }

    /// The documented spellings of those that were there, in the order of the table.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        self.there().map(|(field, _)| field.spellings[0])
    }

    /// What is missing, or cannot stand together, once all of the object has been seen.
    pub(super) fn api_error(&self, path: &Path<'_>) -> Option<ApiError> {
        if let Some(number) = each_of(self.shape.required & !self.there).next() {
            let path = Path::Key(path, self.shape.fields[number].spellings[0]).to_string();
            return Some(ApiError::invalid(format!("missing required field {path}")).at(path));
        }
        let clash = (self.shape.beside)(self)?;
        let at = clash.field.map(|name| {
            let written = self.sight(name);
            let written =
                written.map(|(field, sight)| field.spellings[usize::from(sight.spelling)]);
            Path::Key(path, written.unwrap_or(name))
        });
        Some(at.as_ref().unwrap_or(path).wrong(clash.expected))
    }
}

/// A single value, wherever it was read: no list and no object has any of these.
pub(super) trait Given {
    fn is_null(&self) -> bool;
    fn is_text(&self) -> bool;
    fn flag(&self) -> Option<bool>;
    fn number(&self) -> Option<f64>;
    /// Whole numbers may be spelled `40.0`.
    fn whole(&self) -> Option<i64>;
    fn text(&self) -> Option<Cow<'_, str>>;
}

pub(super) fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0).then_some(number as i64)
}

impl Rule {
    /// What such a value is called.
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

    #[cold]
    pub(super) fn broken(&self, path: &Path<'_>) -> ApiError {
        path.wrong(&self.name())
    }

    #[cold]
    pub(super) fn too_many(most: usize, path: &Path<'_>) -> ApiError {
        path.wrong(&format!("at most {most} of them"))
    }

    /// What comes of a value that is neither a list nor an object; `None`: it counts as absent.
    pub(super) fn hold(
        &self,
        given: &impl Given,
        path: &Path<'_>,
    ) -> Result<Option<Value>, ApiError> {
        if given.is_null() {
            return Ok(None);
        }
        let other = |held: bool| held.then_some(Value::OTHER);
        let held = match self {
            Rule::Text => other(given.is_text()),
            Rule::Flag => given.flag().map(|flag| match flag {
                true => Value::TRUE,
                false => Value::OTHER,
            }),
            Rule::Number(least, most) => {
                let number = given.number();
                other(number.is_some_and(|number| (*least..=*most).contains(&number)))
            }
            Rule::Whole(least, most) => {
                let number = given.whole();
                other(number.is_some_and(|number| (*least..=*most).contains(&number)))
            }
            Rule::Word(words) => match given.text() {
                Some(given) if given.is_empty() || given.ends_with(UNSPECIFIED) => return Ok(None),
                given => {
                    let given = given.unwrap_or_default();
                    let mut words = (0..).zip(*words);
                    let word = words.find(|(_, word)| word.eq_ignore_ascii_case(&given));
                    word.map(|(number, _)| Value::word(number))
                }
            },
            Rule::Form(takes, _) => other(given.text().is_some_and(|given| takes(&given))),
            Rule::List(_) | Rule::Few(..) | Rule::Object(_) | Rule::Noted(_) => None,
        };
        match held {
            Some(value) => Ok(Some(value)),
            None => Err(self.broken(path)),
        }
    }
}
