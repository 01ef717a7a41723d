//! The schema dialect of the format, and its conversion from and to JSON Schema.
//!
//! `{"type":"STRING","nullable":true}` ↔ `{"type":["string","null"]}`. Only keywords are converted:
//! a property may be called `type`.

use std::borrow::Cow;
use std::collections::HashMap;

use serde_json_borrow::ObjectAsVec;

use super::json_schema::encode_json_schema;
use super::reference_budget::ReferenceBudget;
use super::schema_builder::{NotExpressible, SHARED_KEYWORDS, SchemaBuilder};
use crate::json::{Node, Path};
use crate::model::{ApiError, FieldLocation, Json, Losses};

/// Keywords that clients spell in another way than JSON Schema, and its spelling.
const KEYWORD_ALIASES: [(&str, &str); 11] = [
    ("any_of", "anyOf"),
    ("min_items", "minItems"),
    ("max_items", "maxItems"),
    ("min_properties", "minProperties"),
    ("max_properties", "maxProperties"),
    ("min_length", "minLength"),
    ("max_length", "maxLength"),
    ("additional_properties", "additionalProperties"),
    ("property_ordering", "propertyOrdering"),
    ("ref", "$ref"),
    ("defs", "$defs"),
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

/// Limits of a schema with its references resolved, which may be huge or endless. A schema beyond
/// them is sent as JSON Schema.
const MAX_SCHEMAS: usize = 4096;
const MAX_DEPTH: usize = 64;

/// Decodes the schema of a field, in the dialect or in JSON Schema.
pub(super) fn decode_schema<'a>(
    node: Option<Node<'a, '_>>,
    losses: &mut Losses,
) -> Result<Option<Json<'a>>, ApiError> {
    match node {
        None => Ok(None),
        Some(Node { value, path }) if value.is_object() => {
            Ok(Some(to_json_schema(value, &path, losses)))
        }
        Some(node) => Err(node.wrong("a schema object")),
    }
}

/// Converts a schema of the dialect to JSON Schema.
pub(super) fn to_json_schema<'a>(
    schema: Json<'a>,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Json<'a> {
    let Json::Object(object) = schema else {
        return schema;
    };
    let mut nullable = false;
    let mut keywords: Vec<(&'a str, Json<'a>)> = Vec::new();
    for (key, value) in object.into_vec() {
        let path = Path::Key(path, &key);
        let keyword = match (keyword_for(&key), &key) {
            (Some(keyword), _) => keyword,
            (None, Cow::Borrowed(key)) => *key,
            // The key has escapes, which no keyword needs.
            (None, Cow::Owned(_)) => "",
        };
        match keyword {
            "nullable" => nullable = value == Json::Bool(true),
            "propertyOrdering" | "example" | "" => {
                losses.dropped(FieldLocation::Path(path.to_string().into()));
            }
            "type" => keywords.extend(decode_type(value).map(|value| (keyword, value))),
            _ => keywords.push((keyword, decode_keyword(keyword, value, &path, losses))),
        }
    }
    if nullable {
        allow_null(&mut keywords);
    }
    Json::Object(keywords.into())
}

/// The JSON Schema spelling of a keyword that has an alias.
fn keyword_for(key: &str) -> Option<&'static str> {
    let found = KEYWORD_ALIASES.iter().find(|(alias, _)| *alias == key)?;
    Some(found.1)
}

fn decode_keyword<'a>(
    keyword: &str,
    value: Json<'a>,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Json<'a> {
    match (keyword, value) {
        ("properties" | "patternProperties" | "$defs" | "definitions", Json::Object(named)) => {
            decode_named_schemas(named, path, losses)
        }
        ("anyOf" | "oneOf" | "allOf" | "prefixItems", Json::Array(schemas)) => {
            let decode = |(at, schema)| to_json_schema(schema, &Path::Index(path, at), losses);
            Json::Array(schemas.into_iter().enumerate().map(decode).collect())
        }
        ("items" | "additionalProperties" | "not", schema) => to_json_schema(schema, path, losses),
        // The format sends 64-bit integers as strings.
        (
            "minItems" | "maxItems" | "minProperties" | "maxProperties" | "minLength" | "maxLength",
            Json::Str(digits),
        ) => match digits.parse::<u64>() {
            Ok(number) => number.into(),
            Err(_) => Json::Str(digits),
        },
        (_, value) => value,
    }
}

/// How many members of an object are looked up one by one.
const MAX_LOOKED_UP: usize = 64;

/// Decodes the schemas of an object, each under its name.
fn decode_named_schemas<'a>(
    mut named: ObjectAsVec<'a>,
    path: &Path<'_>,
    losses: &mut Losses,
) -> Json<'a> {
    let mut names = named.as_vec().iter().map(|(name, _)| &name.0);
    if names.all(|name| matches!(name, Cow::Borrowed(_))) {
        let schemas = named
            .into_vec()
            .into_iter()
            .filter_map(|(name, schema)| match name {
                Cow::Borrowed(name) => {
                    let schema = to_json_schema(schema, &Path::Key(path, name), losses);
                    Some((name, schema))
                }
                Cow::Owned(_) => None,
            });
        return Json::Object(schemas.collect());
    }
    if named.len() > MAX_LOOKED_UP {
        losses.approximated(FieldLocation::Path(path.to_string().into()));
        return Json::Object(named);
    }
    let names: Vec<String> = named.keys().map(str::to_owned).collect();
    for name in names {
        if let Some(schema) = named.get_mut(&name) {
            let path = Path::Key(path, &name);
            *schema = to_json_schema(std::mem::take(schema), &path, losses);
        }
    }
    Json::Object(named)
}

/// Decodes `type`, which clients write in upper case.
fn decode_type(value: Json<'_>) -> Option<Json<'_>> {
    match value {
        Json::Str(name) if name == "TYPE_UNSPECIFIED" => None,
        Json::Str(name) if name.bytes().any(|byte| byte.is_ascii_uppercase()) => {
            Some(name.to_ascii_lowercase().into())
        }
        Json::Array(names) => {
            let names = names.into_iter().filter_map(decode_type);
            Some(Json::Array(names.collect()))
        }
        other => Some(other),
    }
}

/// Adds null to the types that a schema allows, for `nullable`.
fn allow_null(keywords: &mut [(&str, Json<'_>)]) {
    let find = |name: &str| keywords.iter().position(|(keyword, _)| *keyword == name);
    let Some(at) = find("type").or_else(|| find("anyOf")) else {
        return;
    };
    match &mut keywords[at] {
        (_, kind @ Json::Str(_)) => {
            let name = std::mem::take(kind);
            *kind = Json::Array(vec![name, "null".into()]);
        }
        ("anyOf", Json::Array(schemas)) => {
            schemas.push(Json::Object(vec![("type", "null".into())].into()));
        }
        (_, Json::Array(names)) if !names.contains(&"null".into()) => names.push("null".into()),
        _ => {}
    }
}

/// A schema for an upstream.
pub(super) enum EncodedSchema<'a> {
    /// In the dialect, for `parameters` and `responseSchema`.
    Native {
        schema: Json<'a>,
        /// Whether nothing was left out.
        exact: bool,
    },
    /// Not expressible in the dialect, for `parametersJsonSchema` and `responseJsonSchema`.
    JsonSchema {
        schema: Json<'a>,
        /// Whether nothing was left out.
        exact: bool,
    },
}

/// Encodes a JSON Schema in the dialect, or as JSON Schema where the dialect cannot express it.
pub(super) fn encode_schema<'a>(
    schema: &'a Json<'a>,
    budget: &mut ReferenceBudget,
) -> EncodedSchema<'a> {
    let mut encoder = SchemaEncoder {
        root: schema,
        budget,
        references: Vec::new(),
        members: HashMap::new(),
        schemas: 0,
        depth: 0,
        exact: true,
    };
    match encoder.encode_schema(schema) {
        Ok(schema) => EncodedSchema::Native {
            schema,
            exact: encoder.exact,
        },
        Err(NotExpressible) => {
            let (schema, exact) = encode_json_schema(schema);
            EncodedSchema::JsonSchema { schema, exact }
        }
    }
}

/// Reports a schema of which something was left out.
pub(super) fn report_inexact(exact: bool, location: FieldLocation, losses: &mut Losses) {
    if !exact {
        losses.approximated(location);
    }
}

/// The state of encoding one schema with all that it refers to.
struct SchemaEncoder<'a, 'b> {
    root: &'a Json<'a>,
    budget: &'b mut ReferenceBudget,
    /// The references that are being resolved.
    references: Vec<&'a str>,
    /// The members of large objects that references point into, by the reference of the object.
    members: HashMap<&'a str, HashMap<&'a str, &'a Json<'a>>>,
    schemas: usize,
    depth: usize,
    exact: bool,
}

impl<'a> SchemaEncoder<'a, '_> {
    fn encode_schema(&mut self, schema: &'a Json<'a>) -> Result<Json<'a>, NotExpressible> {
        self.schemas += 1;
        if self.schemas > MAX_SCHEMAS || self.depth == MAX_DEPTH {
            return Err(NotExpressible);
        }
        let mut builder = SchemaBuilder::default();
        match schema {
            Json::Bool(true) => {}
            Json::Object(keywords) => {
                self.depth += 1;
                for (keyword, value) in keywords.iter() {
                    self.encode_keyword(keyword, value, &mut builder)?;
                }
                self.depth -= 1;
            }
            _ => return Err(NotExpressible),
        }
        builder.finish()
    }

    fn encode_keyword(
        &mut self,
        keyword: &'a str,
        value: &'a Json<'a>,
        builder: &mut SchemaBuilder<'a>,
    ) -> Result<(), NotExpressible> {
        match keyword {
            "type" => return builder.encode_type(value),
            "enum" => return self.encode_enum(value.as_array().ok_or(NotExpressible)?, builder),
            "const" => return self.encode_enum(std::slice::from_ref(value), builder),
            "nullable" => builder.nullable |= *value == Json::Bool(true),
            "properties" => {
                let properties = value.as_object().ok_or(NotExpressible)?;
                let mut encoded = Vec::new();
                for (name, schema) in properties.iter() {
                    encoded.push((name, self.encode_schema(schema)?));
                }
                return builder.put(keyword, Json::Object(encoded.into()));
            }
            "items" => {
                let items = self.encode_schema(value)?;
                return builder.put(keyword, items);
            }
            "anyOf" | "oneOf" => return self.encode_alternatives(keyword, value, builder),
            "allOf" => match value {
                Json::Array(all) if all.len() == 1 => {
                    builder.merged.push(self.encode_schema(&all[0])?)
                }
                _ => return Err(NotExpressible),
            },
            "$ref" => {
                let reference = value.as_str().ok_or(NotExpressible)?;
                builder.merged.push(self.resolve(reference)?);
            }
            // The dialect has no tuples, but JSON Schema has.
            "prefixItems" => return Err(NotExpressible),
            "format" if value.as_str().is_some_and(|name| FORMATS.contains(&name)) => {
                return builder.put(keyword, value.clone());
            }
            // Definitions are encoded where they are referred to.
            "$defs" | "definitions" => {}
            _ if SHARED_KEYWORDS.contains(&keyword) => return builder.put(keyword, value.clone()),
            _ => self.exact = false,
        }
        Ok(())
    }

    /// Encodes the values of `enum` or `const`. The dialect lists only strings; a list of booleans
    /// becomes the type.
    fn encode_enum(
        &mut self,
        values: &'a [Json<'a>],
        builder: &mut SchemaBuilder<'a>,
    ) -> Result<(), NotExpressible> {
        let mut strings = Vec::new();
        let mut booleans = Vec::new();
        for value in values.iter().filter(|value| !value.is_null()) {
            match value {
                Json::Str(_) => strings.push(value.clone()),
                Json::Bool(value) => booleans.push(*value),
                _ => return Err(NotExpressible),
            }
        }
        let has_null = strings.len() + booleans.len() < values.len();
        if has_null && strings.is_empty() && booleans.is_empty() {
            return builder.put("type", "NULL".into());
        }
        builder.nullable |= has_null;
        match (strings.is_empty(), booleans.is_empty()) {
            (false, false) => Err(NotExpressible),
            (true, false) => {
                self.exact &= booleans.contains(&true) && booleans.contains(&false);
                builder.put("type", "BOOLEAN".into())
            }
            (_, true) => builder.put("enum", Json::Array(strings)),
        }
    }

    fn encode_alternatives(
        &mut self,
        keyword: &str,
        value: &'a Json<'a>,
        builder: &mut SchemaBuilder<'a>,
    ) -> Result<(), NotExpressible> {
        let Json::Array(all) = value else {
            return Err(NotExpressible);
        };
        let mut encoded = Vec::new();
        for schema in all.iter().filter(|schema| !is_null_schema(schema)) {
            encoded.push(self.encode_schema(schema)?);
        }
        builder.nullable |= encoded.len() < all.len();
        match encoded.len() {
            0 => return builder.put("type", "NULL".into()),
            1 => builder.merged.extend(encoded),
            _ => {
                // The dialect has no `oneOf`.
                self.exact &= keyword == "anyOf";
                return builder.put("anyOf", Json::Array(encoded));
            }
        }
        Ok(())
    }

    /// Encodes the schema that a reference points to, which must be in the same schema and must not
    /// contain the reference.
    fn resolve(&mut self, reference: &'a str) -> Result<Json<'a>, NotExpressible> {
        if self.references.contains(&reference) {
            return Err(NotExpressible);
        }
        let steps = reference.strip_prefix("#/").ok_or(NotExpressible)?;
        let mut found = self.root;
        let mut walked = 1;
        for step in steps.split('/') {
            let name = step.replace("~1", "/").replace("~0", "~");
            let parent = &reference[..walked];
            walked += 1 + step.len();
            found = match found {
                Json::Object(object) => {
                    let member = self.member(parent, object, &name);
                    member.ok_or(NotExpressible)?
                }
                Json::Array(items) => {
                    let at: usize = name.parse().map_err(|_| NotExpressible)?;
                    items.get(at).ok_or(NotExpressible)?
                }
                _ => return Err(NotExpressible),
            };
        }
        self.budget.take(found)?;
        self.references.push(reference);
        let encoded = self.encode_schema(found)?;
        self.references.pop();
        Ok(encoded)
    }

    /// Finds a member of an object; of a large one, without a search through all of them.
    fn member(
        &mut self,
        reference: &'a str,
        object: &'a ObjectAsVec<'a>,
        name: &str,
    ) -> Option<&'a Json<'a>> {
        if object.len() <= MAX_LOOKED_UP {
            return object.get(name);
        }
        let members = self.members.entry(reference).or_insert_with(|| {
            let mut members = HashMap::with_capacity(object.len());
            for (name, member) in object.iter() {
                members.entry(name).or_insert(member);
            }
            members
        });
        members.get(name).copied()
    }
}

/// Whether a schema allows nothing but null.
fn is_null_schema(schema: &Json<'_>) -> bool {
    let Json::Object(keywords) = schema else {
        return false;
    };
    let only_null = |values: &Json<'_>| *values == Json::Array(vec![Json::Null]);
    keywords.get("type").and_then(Json::as_str) == Some("null")
        || keywords.get("const") == Some(&Json::Null)
        || keywords.get("enum").is_some_and(only_null)
}
