//! The `telemetry` table.

use std::time::Duration;

use super::headers;
use crate::config::settings::{Secret, TelemetryConfig};
use crate::config::table::{ConfigField, ConfigReader};
use crate::config::values;

const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const DEFAULT_SERVICE_NAME: &str = "omniglot";

pub fn parse(reader: &mut ConfigReader, field: ConfigField) -> Option<TelemetryConfig> {
    let mut table = reader.table("telemetry", field)?;
    let endpoint = reader.required(&mut table, "endpoint", values::base_url);
    let headers = table.take("headers");
    let headers = headers.map(|field| headers::parse(reader, field, |_| None));
    let headers = headers.unwrap_or_default().into_iter();
    let headers = headers.map(|(name, value)| (name, Secret::new(value)));
    let timeout = reader.optional(&mut table, "timeout", values::duration);
    let sample = reader.optional(&mut table, "sample", values::ratio);
    let service_name = reader.optional(&mut table, "service_name", values::label);
    let content = reader.optional(&mut table, "content", values::switch);
    let resource = table.take("resource");
    let resource = resource.map(|field| parse_resource(reader, field));
    reader.finish(table);
    Some(TelemetryConfig {
        endpoint: endpoint?.value,
        headers: headers.collect(),
        timeout: timeout.unwrap_or(DEFAULT_TIMEOUT),
        sample: sample.unwrap_or(1.0),
        service_name: service_name.unwrap_or_else(|| DEFAULT_SERVICE_NAME.to_owned()),
        content: content.unwrap_or(false),
        resource: resource.unwrap_or_default(),
    })
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
