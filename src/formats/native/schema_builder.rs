//! A builder for schemas of the dialect.

use crate::model::Json;

/// The types of JSON Schema and their names in the dialect.
const TYPES: [(&str, &str); 7] = [
    ("string", "STRING"),
    ("number", "NUMBER"),
    ("integer", "INTEGER"),
    ("boolean", "BOOLEAN"),
    ("array", "ARRAY"),
    ("object", "OBJECT"),
    ("null", "NULL"),
];

/// Keywords that mean the same in the dialect and in JSON Schema.
pub(super) const SHARED_KEYWORDS: [&str; 15] = [
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

/// The error for a schema that the dialect cannot express.
pub(super) struct NotExpressible;

/// A schema of the dialect that is being built.
#[derive(Default)]
pub(super) struct SchemaBuilder<'a> {
    keywords: Vec<(&'a str, Json<'a>)>,
    pub(super) nullable: bool,
    /// Encoded schemas that apply to the same value.
    pub(super) merged: Vec<Json<'a>>,
}

impl<'a> SchemaBuilder<'a> {
    /// Adds a keyword, which must not be there with another value.
    pub(super) fn put(&mut self, keyword: &'a str, value: Json<'a>) -> Result<(), NotExpressible> {
        let known = self.keywords.iter().find(|(known, _)| *known == keyword);
        match known {
            None => self.keywords.push((keyword, value)),
            Some((_, before)) if *before == value => {}
            Some(_) => return Err(NotExpressible),
        }
        Ok(())
    }

    /// Encodes `type`, a name or a list of names.
    pub(super) fn encode_type(&mut self, value: &'a Json<'a>) -> Result<(), NotExpressible> {
        let upper_case = |value: &Json<'_>| -> Result<Json<'a>, NotExpressible> {
            let name = value.as_str().ok_or(NotExpressible)?;
            let known = TYPES
                .iter()
                .find(|(json_type, _)| json_type.eq_ignore_ascii_case(name));
            known
                .map(|(_, encoded)| (*encoded).into())
                .ok_or(NotExpressible)
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

    pub(super) fn finish(mut self) -> Result<Json<'a>, NotExpressible> {
        for schema in std::mem::take(&mut self.merged) {
            let Json::Object(keywords) = schema else {
                continue;
            };
            for (keyword, value) in keywords.into_vec() {
                self.merge(&keyword, value)?;
            }
        }
        let has = |keyword: &str| self.keywords.iter().any(|(known, _)| *known == keyword);
        // JSON Schema may leave the type of an enum out; the dialect requires it.
        if has("enum") && !has("type") {
            self.keywords.insert(0, ("type", "STRING".into()));
        }
        if self.nullable {
            self.keywords.push(("nullable", Json::Bool(true)));
        }
        Ok(Json::Object(self.keywords.into()))
    }

    /// Adds a keyword of a merged schema. An annotation of the schema around it wins, as it is closer
    /// to the value.
    fn merge(&mut self, keyword: &str, value: Json<'a>) -> Result<(), NotExpressible> {
        const ENCODED: [&str; 7] = [
            "type",
            "enum",
            "properties",
            "items",
            "anyOf",
            "format",
            "nullable",
        ];
        let known = ENCODED
            .iter()
            .chain(&SHARED_KEYWORDS)
            .find(|known| **known == keyword);
        let keyword = *known.ok_or(NotExpressible)?;
        let taken = self.keywords.iter().any(|(known, _)| *known == keyword);
        match keyword {
            "nullable" => self.nullable = true,
            "title" | "description" | "default" | "example" if taken => {}
            _ => return self.put(keyword, value),
        }
        Ok(())
    }
}
