//! The `telemetry` table.

use std::time::Duration;

use crate::config::settings::{Secret, TelemetryConfig};
use crate::config::table::{ConfigField, ConfigReader};
use crate::config::values;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_SERVICE_NAME: &str = "omniglot";

pub fn parse(reader: &mut ConfigReader, field: ConfigField) -> Option<TelemetryConfig> {
    let mut table = reader.table("telemetry", field)?;
    let endpoint = reader.required(&mut table, "endpoint", values::base_url);
    let headers = table.take("headers");
    let headers = headers.map(|field| parse_headers(reader, field));
    let timeout = reader.optional(&mut table, "timeout", values::duration);
    let sample = reader.optional(&mut table, "sample", values::ratio);
    let service_name = reader.optional(&mut table, "service_name", values::label);
    let content = reader.optional(&mut table, "content", values::switch);
    let resource = table.take("resource");
    let resource = resource.map(|field| parse_resource(reader, field));
    reader.finish(table);
    Some(TelemetryConfig {
        endpoint: endpoint?.value,
        headers: headers.unwrap_or_default(),
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        sample: sample.unwrap_or(1.0),
        service_name: service_name.unwrap_or_else(|| DEFAULT_SERVICE_NAME.to_owned()),
        content: content.unwrap_or(false),
        resource: resource.unwrap_or_default(),
    })
}

fn parse_headers(reader: &mut ConfigReader, field: ConfigField) -> Vec<(String, Secret)> {
    let Some(mut table) = reader.table("headers", field) else {
        return Vec::new();
    };
    let mut headers: Vec<(String, Secret)> = Vec::new();
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
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let value = reader.hidden(field, values::header_value);
        headers.extend(value.map(|value| (name, Secret::new(value.value))));
    }
    headers
}

fn parse_resource(reader: &mut ConfigReader, field: ConfigField) -> Vec<(String, String)> {
    let Some(mut table) = reader.table("resource", field) else {
        return Vec::new();
    };
    let mut attributes = Vec::new();
    for (key, node) in table.take_rest() {
        if key.name == "service.name" {
            let message = "resource has no service.name; set telemetry.service_name";
            reader.problems.add(key.position, message);
            continue;
        }
        let field = ConfigField {
            name: &key.name,
            node,
        };
        let value = reader.value(field, values::label);
        attributes.extend(value.map(|value| (key.name.clone(), value.value)));
    }
    attributes
}
