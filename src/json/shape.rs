//! Holding a body against a table of rules while it is read: no tree is built, no long text copied.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::fields::Path;
use crate::model::{Fault, shortened};

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
    Object(&'static Shape),
    /// The rule inside holds, and whoever checks is told of the field.
    Noted(&'static Rule),
}

/// What words end in that say nothing.
pub const UNSPECIFIED: &str = "_UNSPECIFIED";

#[derive(Debug)]
pub struct Field {
    /// The documented spelling first; faults name the one that was written.
    pub spellings: &'static [&'static str],
    pub rule: Rule,
    pub required: bool,
}

/// An object: the fields that have rules, and what they must be beside each other. Others are
/// not looked at.
#[derive(Debug)]
pub struct Shape {
    pub fields: &'static [Field],
    pub beside: fn(&Seen) -> Option<Clash>,
}

/// Fields that cannot stand together.
#[derive(Debug)]
pub struct Clash {
    /// The documented spelling; `None`: it is the whole object.
    pub field: Option<&'static str>,
    pub expected: &'static str,
}

/// No shape has more fields with rules.
const MOST_FIELDS: usize = 32;

/// Which fields of an object were there.
#[derive(Debug)]
pub struct Seen {
    shape: &'static Shape,
    sights: [Option<Sight>; MOST_FIELDS],
}

#[derive(Debug, Clone, Copy)]
struct Sight {
    spelling: u8,
    value: Value,
}

/// What is kept of a value. Small, as every object has room for all of them.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// By its number in the rule.
    Word(u8),
    True,
    Other,
}

impl Seen {
    fn sight(&self, field: &str) -> Option<(&'static Field, Sight)> {
        let mut fields = self.shape.fields.iter().zip(&self.sights);
        let (field, sight) = fields.find(|(known, _)| known.spellings[0] == field)?;
        Some((field, (*sight)?))
    }

    pub fn has(&self, field: &str) -> bool {
        self.sight(field).is_some()
    }

    pub fn is_true(&self, field: &str) -> bool {
        let sight = self.sight(field);
        sight.is_some_and(|(_, sight)| matches!(sight.value, Value::True))
    }

    pub fn word(&self, field: &str) -> Option<&'static str> {
        let (field, sight) = self.sight(field)?;
        match sight.value {
            Value::Word(number) => field.rule.word(number),
            Value::True | Value::Other => None,
        }
    }

    /// The documented spellings of those that were there, in the order of the table.
    pub fn all(&self) -> impl Iterator<Item = &'static str> {
        let sights = self.shape.fields.iter().zip(&self.sights);
        let there = sights.filter(|(_, sight)| sight.is_some());
        there.map(|(field, _)| field.spellings[0])
    }

    fn written(&self, index: usize) -> &'static str {
        let spelling = self.sights[index].map_or(0, |sight| usize::from(sight.spelling));
        self.shape.fields[index].spellings[spelling]
    }
}

/// A field with the rule [`Rule::Noted`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// In the documented spelling.
    pub field: &'static str,
    pub path: String,
    /// Where its name stands in the body, without the quotes; `None`: it is written with escapes.
    pub name: Option<Range<usize>>,
}

/// Reads a whole body. `Err`: it is no JSON object, or breaks a rule; the first breach is named.
pub fn check(body: &[u8], shape: &'static Shape) -> Result<Vec<Noted>, Fault> {
    if body.trim_ascii_start().first() != Some(&b'{') {
        return Err(Fault::invalid("the body must be a JSON object"));
    }
    let mut found = Found {
        body,
        noted: Vec::new(),
        fault: None,
    };
    let mut reader = serde_json::Deserializer::from_slice(body);
    let rule = Rule::Object(shape);
    let seed = Check {
        rule: &rule,
        path: &Path::Root,
        found: &mut found,
    };
    let read = seed.deserialize(&mut reader).map(drop);
    match (read.and_then(|()| reader.end()), found.fault) {
        (Ok(()), None) => Ok(found.noted),
        (_, Some(fault)) => Err(fault),
        (Err(error), None) => {
            let reason = error.to_string();
            let reason = shortened(&reason);
            Err(Fault::invalid(format!(
                "the body is not valid JSON: {reason}"
            )))
        }
    }
}

struct Found<'b> {
    body: &'b [u8],
    noted: Vec<Noted>,
    /// The parser's own errors carry nothing but text.
    fault: Option<Fault>,
}

impl Found<'_> {
    fn stop<E: serde::de::Error>(&mut self, fault: Fault) -> E {
        self.fault = Some(fault);
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
                leaf.hold(raw.get(), self.path)
                    .map_err(|fault| self.found.stop(fault))
            }
        }
    }
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

    fn hold(&self, raw: &str, path: &Path<'_>) -> Result<Option<Value>, Fault> {
        if raw == "null" {
            return Ok(None);
        }
        let held = match self {
            Rule::Text => raw.starts_with('"').then_some(Value::Other),
            Rule::Flag => match raw {
                "true" => Some(Value::True),
                "false" => Some(Value::Other),
                _ => None,
            },
            Rule::Number(least, most) => {
                let number = raw.parse::<f64>().ok();
                let inside = number.filter(|number| (*least..=*most).contains(number));
                inside.map(|_| Value::Other)
            }
            Rule::Whole(least, most) => {
                let inside = whole(raw).filter(|number| (*least..=*most).contains(number));
                inside.map(|_| Value::Other)
            }
            Rule::Word(words) => match text(raw) {
                Some(given) if given.is_empty() || given.ends_with(UNSPECIFIED) => return Ok(None),
                given => {
                    let given = given.unwrap_or_default();
                    let mut words = (0..).zip(*words);
                    let word = words.find(|(_, word)| word.eq_ignore_ascii_case(&given));
                    word.map(|(number, _)| Value::Word(number))
                }
            },
            Rule::Form(takes, _) => {
                let given = text(raw).filter(|given| takes(given));
                given.map(|_| Value::Other)
            }
            Rule::List(_) | Rule::Few(..) | Rule::Object(_) | Rule::Noted(_) => None,
        };
        match held {
            Some(value) => Ok(Some(value)),
            None => Err(path.wrong(&self.name())),
        }
    }
}

/// Whole numbers may be spelled `40.0`.
fn whole(raw: &str) -> Option<i64> {
    raw.parse().ok().or_else(|| {
        let number: f64 = raw.parse().ok()?;
        (number.fract() == 0.0).then_some(number as i64)
    })
}

/// What a string says; copied only where it is written with escapes.
fn text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str(raw).ok().map(Cow::Owned)
}

impl<'de> Visitor<'de> for Check<'_, '_, '_, '_> {
    type Value = Option<Value>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.rule.name())
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
                return Ok(Some(Value::Other));
            }
            count += 1;
            if count > most {
                let fault = self.path.wrong(&format!("at most {most} of them"));
                return Err(self.found.stop(fault));
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Option<Value>, A::Error> {
        let Rule::Object(shape) = *self.rule else {
            return Err(self.wrong_kind());
        };
        let mut seen = Seen {
            shape,
            sights: [None; MOST_FIELDS],
        };
        let name = Name {
            shape,
            body: self.found.body,
        };
        while let Some(known) = entries.next_key_seed(name)? {
            let Some(known) = known else {
                entries.next_value::<IgnoredAny>()?;
                continue;
            };
            let field = &shape.fields[known.field];
            let path = Path::Key(self.path, field.spellings[known.spelling]);
            let seed = Check {
                rule: &field.rule,
                path: &path,
                found: self.found,
            };
            let Some(value) = entries.next_value_seed(seed)? else {
                continue;
            };
            if matches!(field.rule, Rule::Noted(_)) {
                self.found.noted.push(Noted {
                    field: field.spellings[0],
                    path: path.to_string(),
                    name: known.place,
                });
            }
            let spelling = known.spelling as u8;
            seen.sights[known.field] = Some(Sight { spelling, value });
        }
        match self.fault_of(&seen) {
            Some(fault) => Err(self.found.stop(fault)),
            None => Ok(Some(Value::Other)),
        }
    }
}

impl Check<'_, '_, '_, '_> {
    fn wrong_kind<E: serde::de::Error>(self) -> E {
        let fault = self.path.wrong(&self.rule.name());
        self.found.stop(fault)
    }

    fn fault_of(&self, seen: &Seen) -> Option<Fault> {
        let fields = seen.shape.fields;
        let mut missing = fields.iter().zip(&seen.sights);
        let missing = missing.find(|(field, sight)| field.required && sight.is_none());
        if let Some((field, _)) = missing {
            let path = Path::Key(self.path, field.spellings[0]).to_string();
            return Some(Fault::invalid(format!("missing required field {path}")).at(path));
        }
        let clash = (seen.shape.beside)(seen)?;
        let at = clash.field.and_then(|name| {
            let index = fields.iter().position(|field| field.spellings[0] == name)?;
            Some(Path::Key(self.path, seen.written(index)))
        });
        Some(at.as_ref().unwrap_or(self.path).wrong(clash.expected))
    }
}

/// Finds the name of a field in the table.
#[derive(Clone, Copy)]
struct Name<'b> {
    shape: &'static Shape,
    body: &'b [u8],
}

struct Known {
    field: usize,
    spelling: usize,
    place: Option<Range<usize>>,
}

impl Name<'_> {
    fn find(&self, name: &str) -> Option<Known> {
        for (field, known) in self.shape.fields.iter().enumerate() {
            let spelling = known.spellings.iter().position(|known| *known == name);
            if let Some(spelling) = spelling {
                return Some(Known {
                    field,
                    spelling,
                    place: None,
                });
            }
        }
        None
    }
}

impl<'de> DeserializeSeed<'de> for Name<'_> {
    type Value = Option<Known>;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Option<Known>, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Name<'_> {
    type Value = Option<Known>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the name of a field")
    }

    fn visit_str<E>(self, name: &str) -> Result<Option<Known>, E> {
        Ok(self.find(name))
    }

    fn visit_borrowed_str<E>(self, name: &'de str) -> Result<Option<Known>, E> {
        let start = (name.as_ptr() as usize).saturating_sub(self.body.as_ptr() as usize);
        let place = start..start + name.len();
        Ok(self.find(name).map(|known| Known {
            place: Some(place),
            ..known
        }))
    }
}
