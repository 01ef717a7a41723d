//! Plain JSON Schema, written in the format's own dialect wherever that can say it.
//!
//! `{"type":["string","null"]}` → `{"type":"STRING","nullable":true}`. Only keywords are touched:
//! a property may well be called `type`.

use super::json_schema;
use crate::model::{FieldLocation, Json, Losses};

pub(super) enum Written<'a> {
    Dialect {
        schema: Json<'a>,
        /// Nothing was left out.
        exact: bool,
    },
    /// Beyond the dialect: to be sent in the field for plain JSON Schema.
    Plain {
        schema: Json<'a>,
        /// Nothing was left out.
        exact: bool,
    },
}

const TYPES: [(&str, &str); 7] = [
    ("string", "STRING"),
    ("number", "NUMBER"),
    ("integer", "INTEGER"),
    ("boolean", "BOOLEAN"),
    ("array", "ARRAY"),
    ("object", "OBJECT"),
    ("null", "NULL"),
];

/// Keywords that mean the same in both.
const SAME: [&str; 15] = [
    "title",
    "description",
    "default",
    "example",
    "required",
    "pattern",
    "minimum",
    "maximum",
    "minItems",
    "maxItems",
    "minLength",
    "maxLength",
    "minProperties",
    "maxProperties",
    "propertyOrdering",
];

const FORMATS: [&str; 9] = [
    "date-time",
    "date",
    "time",
    "duration",
    "int32",
    "int64",
    "float",
    "double",
    "enum",
];

/// References can make a small schema endless or huge; then it is sent as it is.
const MOST_SCHEMAS: usize = 4096;
const DEEPEST: usize = 64;

pub(super) fn write<'a>(schema: &'a Json<'a>) -> Written<'a> {
    let mut writer = Writer {
        root: schema,
        references: Vec::new(),
        schemas: 0,
        depth: 0,
        exact: true,
    };
    match writer.schema(schema) {
        Ok(schema) => Written::Dialect {
            schema,
            exact: writer.exact,
        },
        Err(Unfit) => {
            let (schema, exact) = json_schema::write(schema);
            Written::Plain { schema, exact }
        }
    }
}

pub(super) fn report(exact: bool, place: FieldLocation, losses: &mut Losses) {
    if !exact {
        losses.approximated(place);
    }
}

/// The dialect cannot say it.
struct Unfit;

struct Writer<'a> {
    root: &'a Json<'a>,
    /// Those being followed right now.
    references: Vec<&'a str>,
    schemas: usize,
    depth: usize,
    exact: bool,
}

/// One schema in the making.
#[derive(Default)]
struct Draft<'a> {
    keywords: Vec<(&'a str, Json<'a>)>,
    nullable: bool,
    /// Schemas that say more about the same value.
    merged: Vec<Json<'a>>,
}

impl<'a> Writer<'a> {
    fn schema(&mut self, schema: &'a Json<'a>) -> Result<Json<'a>, Unfit> {
        self.schemas += 1;
        if self.schemas > MOST_SCHEMAS || self.depth == DEEPEST {
            return Err(Unfit);
        }
        let mut draft = Draft::default();
        match schema {
            Json::Bool(true) => {}
            Json::Object(keywords) => {
                self.depth += 1;
                for (keyword, value) in keywords.iter() {
                    self.keyword(keyword, value, &mut draft)?;
                }
                self.depth -= 1;
            }
            _ => return Err(Unfit),
        }
        draft.finish()
    }

    fn keyword(
        &mut self,
        keyword: &'a str,
        value: &'a Json<'a>,
        draft: &mut Draft<'a>,
    ) -> Result<(), Unfit> {
        match keyword {
            "type" => return draft.write_type(value),
            "enum" => return self.list(value.as_array().ok_or(Unfit)?, draft),
            "const" => return self.list(std::slice::from_ref(value), draft),
            "nullable" => draft.nullable |= *value == Json::Bool(true),
            "properties" => {
                let properties = value.as_object().ok_or(Unfit)?;
                let mut written = Vec::new();
                for (name, schema) in properties.iter() {
                    written.push((name, self.schema(schema)?));
                }
                return draft.put(keyword, Json::Object(written.into()));
            }
            "items" => {
                let items = self.schema(value)?;
                return draft.put(keyword, items);
            }
            "anyOf" | "oneOf" => return self.alternatives(keyword, value, draft),
            "allOf" => match value {
                Json::Array(all) if all.len() == 1 => draft.merged.push(self.schema(&all[0])?),
                _ => return Err(Unfit),
            },
            "$ref" => {
                let reference = value.as_str().ok_or(Unfit)?;
                draft.merged.push(self.follow(reference)?);
            }
            // Positions have no counterpart, but plain JSON Schema may keep them.
            "prefixItems" => return Err(Unfit),
            "format" if value.as_str().is_some_and(|name| FORMATS.contains(&name)) => {
                return draft.put(keyword, value.clone());
            }
            // What they hold is written where it is referred to.
            "$defs" | "definitions" => {}
            _ if SAME.contains(&keyword) => return draft.put(keyword, value.clone()),
            _ => self.exact = false,
        }
        Ok(())
    }

    /// Only words can be listed; of truth values, the type is all that can be told.
    fn list(&mut self, values: &'a [Json<'a>], draft: &mut Draft<'a>) -> Result<(), Unfit> {
        let mut words = Vec::new();
        let mut truths = Vec::new();
        for value in values.iter().filter(|value| !value.is_null()) {
            match value {
                Json::Str(_) => words.push(value.clone()),
                Json::Bool(truth) => truths.push(*truth),
                _ => return Err(Unfit),
            }
        }
        let has_null = words.len() + truths.len() < values.len();
        if has_null && words.is_empty() && truths.is_empty() {
            return draft.put("type", "NULL".into());
        }
        draft.nullable |= has_null;
        match (words.is_empty(), truths.is_empty()) {
            (false, false) => Err(Unfit),
            (true, false) => {
                self.exact &= truths.contains(&true) && truths.contains(&false);
                draft.put("type", "BOOLEAN".into())
            }
            (_, true) => draft.put("enum", Json::Array(words)),
        }
    }

    fn alternatives(
        &mut self,
        keyword: &str,
        value: &'a Json<'a>,
        draft: &mut Draft<'a>,
    ) -> Result<(), Unfit> {
        let Json::Array(all) = value else {
            return Err(Unfit);
        };
        let mut written = Vec::new();
        for schema in all.iter().filter(|schema| !is_null(schema)) {
            written.push(self.schema(schema)?);
        }
        draft.nullable |= written.len() < all.len();
        match written.len() {
            0 => return draft.put("type", "NULL".into()),
            1 => draft.merged.extend(written),
            _ => {
                // Of several that fit, any will do.
                self.exact &= keyword == "anyOf";
                return draft.put("anyOf", Json::Array(written));
            }
        }
        Ok(())
    }

    /// What the reference stands for, which must be in the same schema and not around it.
    fn follow(&mut self, reference: &'a str) -> Result<Json<'a>, Unfit> {
        if self.references.contains(&reference) {
            return Err(Unfit);
        }
        let steps = reference.strip_prefix("#/").ok_or(Unfit)?;
        let mut found = self.root;
        for step in steps.split('/') {
            let name = step.replace("~1", "/").replace("~0", "~");
            found = match found {
                Json::Object(object) => object.get(&name).ok_or(Unfit)?,
                Json::Array(items) => {
                    let at: usize = name.parse().map_err(|_| Unfit)?;
                    items.get(at).ok_or(Unfit)?
                }
                _ => return Err(Unfit),
            };
        }
        self.references.push(reference);
        let written = self.schema(found)?;
        self.references.pop();
        Ok(written)
    }
}

/// The schema of nothing but null.
fn is_null(schema: &Json<'_>) -> bool {
    let Json::Object(keywords) = schema else {
        return false;
    };
    let only_null = |values: &Json<'_>| *values == Json::Array(vec![Json::Null]);
    keywords.get("type").and_then(Json::as_str) == Some("null")
        || keywords.get("const") == Some(&Json::Null)
        || keywords.get("enum").is_some_and(only_null)
}

impl<'a> Draft<'a> {
    fn put(&mut self, keyword: &'a str, value: Json<'a>) -> Result<(), Unfit> {
        let known = self.keywords.iter().find(|(known, _)| *known == keyword);
        match known {
            None => self.keywords.push((keyword, value)),
            Some((_, before)) if *before == value => {}
            Some(_) => return Err(Unfit),
        }
        Ok(())
    }

    fn write_type(&mut self, value: &'a Json<'a>) -> Result<(), Unfit> {
        let upper_case = |value: &Json<'_>| -> Result<Json<'a>, Unfit> {
            let name = value.as_str().ok_or(Unfit)?;
            let known = TYPES
                .iter()
                .find(|(plain, _)| plain.eq_ignore_ascii_case(name));
            known.map(|(_, ours)| (*ours).into()).ok_or(Unfit)
        };
        let Json::Array(names) = value else {
            return self.put("type", upper_case(value)?);
        };
        let mut types = names
            .iter()
            .filter(|name| name.as_str() != Some("null"))
            .map(upper_case)
            .collect::<Result<Vec<_>, _>>()?;
        self.nullable |= types.len() < names.len();
        match (types.pop(), types.is_empty()) {
            (None, _) => self.put("type", "NULL".into()),
            (Some(only), true) => self.put("type", only),
            (Some(last), false) => {
                types.push(last);
                let schema = |name| Json::Object(vec![("type", name)].into());
                let schemas = types.into_iter().map(schema).collect();
                self.put("anyOf", Json::Array(schemas))
            }
        }
    }

    fn finish(mut self) -> Result<Json<'a>, Unfit> {
        for schema in std::mem::take(&mut self.merged) {
            let Json::Object(keywords) = schema else {
                continue;
            };
            for (keyword, value) in keywords.into_vec() {
                self.merge(&keyword, value)?;
            }
        }
        let has = |keyword: &str| self.keywords.iter().any(|(known, _)| *known == keyword);
        // A list of words implies it, but must say it here.
        if has("enum") && !has("type") {
            self.keywords.insert(0, ("type", "STRING".into()));
        }
        if self.nullable {
            self.keywords.push(("nullable", Json::Bool(true)));
        }
        Ok(Json::Object(self.keywords.into()))
    }

    /// What stands around it is closer to the value and wins, where it only explains.
    fn merge(&mut self, keyword: &str, value: Json<'a>) -> Result<(), Unfit> {
        const WRITTEN: [&str; 7] = [
            "type",
            "enum",
            "properties",
            "items",
            "anyOf",
            "format",
            "nullable",
        ];
        let known = WRITTEN.iter().chain(&SAME).find(|known| **known == keyword);
        let keyword = *known.ok_or(Unfit)?;
        let taken = self.keywords.iter().any(|(known, _)| *known == keyword);
        match keyword {
            "nullable" => self.nullable = true,
            "title" | "description" | "default" | "example" if taken => {}
            _ => return self.put(keyword, value),
        }
        Ok(())
    }
}
