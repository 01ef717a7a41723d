//! Credentials of AWS: `auth: {aws: {…}}`, and those of presets whose requests are signed.

use super::template_values::TemplateValues;
use crate::config::problem::Position;
use crate::config::providers::Provider;
use crate::config::settings::{AwsSource, Secret};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable};
use crate::config::values;

/// The service where neither the config nor a preset names one.
const SERVICE: &str = "bedrock";

/// The variables in which AWS tools look for a region.
const REGION_VARIABLES: [&str; 2] = ["AWS_REGION", "AWS_DEFAULT_REGION"];

/// Parses the keys of `aws`, all of which may be absent.
pub fn parse(
    reader: &mut ConfigReader,
    field: ConfigField,
    provider: Option<&Provider>,
    values: &TemplateValues,
) -> Option<AwsSource> {
    let table = reader.table("aws", field)?;
    parse_table(reader, table, provider, values)
}

/// The credentials of a preset that no key is set for.
pub fn of_preset(
    reader: &mut ConfigReader,
    provider: &Provider,
    values: &TemplateValues,
    position: Position,
) -> Option<AwsSource> {
    let table = ConfigTable::empty("aws", position);
    parse_table(reader, table, Some(provider), values)
}

fn parse_table(
    reader: &mut ConfigReader,
    mut table: ConfigTable,
    provider: Option<&Provider>,
    values: &TemplateValues,
) -> Option<AwsSource> {
    let position = table.position;
    let region = table.take("region");
    let region = region.map(|field| reader.value(field, values::template_value));
    let service = reader.optional(&mut table, "service", values::template_value);
    let [access_key_id, secret_access_key, session_token] =
        ["access_key_id", "secret_access_key", "session_token"].map(|name| {
            let field = table.take(name)?;
            Some(reader.hidden(field, values::header_value)?.value)
        });
    let [
        profile,
        role_arn,
        role_session_name,
        external_id,
        web_identity_token_file,
    ] = [
        "profile",
        "role_arn",
        "role_session_name",
        "external_id",
        "web_identity_token_file",
    ]
    .map(|name| reader.optional(&mut table, name, values::label));
    reader.finish(table);
    let mut problem = |message: &str| reader.problems.add(position, message.to_owned());
    if access_key_id.is_some() != secret_access_key.is_some() {
        problem("aws takes access_key_id and secret_access_key together, or neither");
    }
    if web_identity_token_file.is_some() && role_arn.is_none() {
        problem("web_identity_token_file needs role_arn");
    }
    let of_upstream = values.get("region").ok();
    let region = match region {
        Some(own) => own?.value,
        None => match of_upstream.or_else(|| region_of_environment(reader)) {
            Some(region) => region,
            None => {
                let message = "credentials of AWS need a region: write region, or set AWS_REGION";
                // What a preset needs for its base URL is not reported twice.
                if !values.lacks_value() {
                    reader.problems.add(position, message);
                }
                return None;
            }
        },
    };
    let of_preset = provider.and_then(|provider| provider.aws_service.clone());
    Some(AwsSource {
        region,
        service: service.or(of_preset).unwrap_or_else(|| SERVICE.to_owned()),
        access_key_id,
        secret_access_key: secret_access_key.map(Secret::new),
        session_token: session_token.map(Secret::new),
        profile,
        role_arn,
        role_session_name,
        external_id,
        web_identity_token_file,
    })
}

fn region_of_environment(reader: &ConfigReader) -> Option<String> {
    let mut set = REGION_VARIABLES
        .iter()
        .filter_map(|name| (reader.env)(name));
    set.find(|region| values::template_value(region).is_ok())
}
