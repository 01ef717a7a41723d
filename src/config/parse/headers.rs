//! A table of headers, as upstreams and the receiver of traces have one.

use crate::config::table::{ConfigField, ConfigReader};
use crate::config::values;

/// Reads names and values. `warning`: what is said of a header with this name.
pub fn parse(
    reader: &mut ConfigReader,
    field: ConfigField,
    warning: impl Fn(&str) -> Option<String>,
) -> Vec<(String, String)> {
    let Some(mut table) = reader.table("headers", field) else {
        return Vec::new();
    };
    let mut headers: Vec<(String, String)> = Vec::new();
    for (key, node) in table.take_rest() {
        let name = match values::header_name(&key.name) {
            Ok(name) => name,
            Err(expected) => {
                let message = format!("{:?} must be {expected}", key.name);
                reader.problems.add(key.position, message);
                continue;
            }
        };
        if headers.iter().any(|(earlier, _)| *earlier == name) {
            let message = format!("duplicate header {:?}; keep one of them", key.name);
            reader.problems.add(key.position, message);
        }
        if let Some(message) = warning(&name) {
            reader.warnings.add(key.position, message);
        }
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let value = reader.hidden(field, values::header_value);
        headers.extend(value.map(|value| (name, value.value)));
    }
    headers
}
