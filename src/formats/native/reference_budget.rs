//! Bounds what references in schemas stand for, which are resolved for upstreams that do not know them.

use super::schema_builder::NotExpressible;
use crate::model::Json;

/// The most bytes that the references of a request's schemas may stand for: a short schema that refers to a
/// long one many times must not become a long one.
const MAX_REFERENCED_BYTES: usize = 1 << 20;

/// What the references of the schemas of a request may still stand for.
pub(super) struct ReferenceBudget(usize);

impl Default for ReferenceBudget {
    fn default() -> ReferenceBudget {
        ReferenceBudget(MAX_REFERENCED_BYTES)
    }
}

impl ReferenceBudget {
    /// Takes the size of a schema that is written in place of a reference.
    pub(super) fn take(&mut self, schema: &Json<'_>) -> Result<(), NotExpressible> {
        match schema {
            Json::Str(text) => self.take_bytes(text.len())?,
            Json::Array(values) => {
                for value in values {
                    self.take(value)?;
                }
            }
            Json::Object(members) => {
                for (name, value) in members.iter() {
                    self.take_bytes(name.len())?;
                    self.take(value)?;
                }
            }
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
        self.take_bytes(size_of::<Json<'_>>())
    }

    fn take_bytes(&mut self, bytes: usize) -> Result<(), NotExpressible> {
        let rest = self.0.checked_sub(bytes);
        self.0 = rest.unwrap_or(0);
        rest.map(|_| ()).ok_or(NotExpressible)
    }
}
