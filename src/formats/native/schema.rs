//! The schema dialect of the format, and its conversion from and to JSON Schema.
//!
//! `{"type":"STRING","nullable":true}` ↔ `{"type":["string","null"]}`. Only keywords are converted:
//! a property may be called `type`.

use std::collections::HashMap;

use serde_json_borrow::ObjectAsVec;

use super::json_schema::encode_json_schema;
use super::reference_budget::ReferenceBudget;
use super::schema_builder::{NotExpressible, SHARED_KEYWORDS, SchemaBuilder};
use super::schema_decoder::MAX_LOOKED_UP;
use crate::model::{FieldLocation, Json, Losses};

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
    /// The members of large objects that references point into, by the address of the object: references may spell the way
    /// to one object differently.
    members: HashMap<usize, HashMap<&'a str, &'a Json<'a>>>,
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
        for step in steps.split('/') {
            let name = step.replace("~1", "/").replace("~0", "~");
            found = match found {
                Json::Object(object) => {
                    let member = self.member(object, &name);
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
    fn member(&mut self, object: &'a ObjectAsVec<'a>, name: &str) -> Option<&'a Json<'a>> {
        if object.len() <= MAX_LOOKED_UP {
            return object.get(name);
        }
        let address = std::ptr::from_ref(object).addr();
        let members = self.members.entry(address).or_insert_with(|| {
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
