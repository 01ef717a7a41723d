//! Settings of a request for which an upstream has other prices: a faster service, or one in a certain place.

use super::body::decode_unique_fields;
use crate::json::UniqueField;
use crate::model::{ApiError, truncated};

/// Such a setting, and what is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DearerSetting {
    pub field: &'static str,
    pub value: String,
    /// The value that has the usual prices.
    pub usual: &'static str,
}

/// The service tiers of the chat and responses formats that cost no more than the prices of a model.
pub(super) const USUAL_TIERS: &[&str] = &["default", "auto", "flex", "standard", "on_demand"];

/// Finds the first field with another value than the usual ones, of which the first is recommended. Their case does not
/// matter.
pub(super) fn find_dearer<const N: usize>(
    body: &[u8],
    fields: [(&[&'static str], &[&'static str]); N],
) -> Result<Option<DearerSetting>, ApiError> {
    let found = decode_unique_fields(body, fields.map(|(names, _)| names))?;
    let mut settings = found.iter().zip(fields);
    Ok(settings.find_map(|(field, (_, usual))| dearer(field, usual)))
}

fn dearer(field: &UniqueField<'_>, usual: &[&'static str]) -> Option<DearerSetting> {
    let raw = field.value()?;
    let text = raw.text();
    let is_usual = |text: &str| usual.iter().any(|usual| usual.eq_ignore_ascii_case(text));
    if text.as_deref().is_some_and(is_usual) {
        return None;
    }
    let value = text.unwrap_or_else(|| raw.get().into());
    Some(DearerSetting {
        field: field.name(),
        value: truncated(&value).into_owned(),
        usual: usual.first().copied().unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use crate::model::Format;

    #[test]
    fn what_costs_more_is_found_in_every_format() {
        for (format, body, found) in [
            (
                Format::Chat,
                r#"{"service_tier":"priority"}"#,
                Some(("service_tier", "priority")),
            ),
            (
                Format::Chat,
                r#"{"service_tier":"fast"}"#,
                Some(("service_tier", "fast")),
            ),
            (
                Format::Chat,
                r#"{"service_tier":["priority"]}"#,
                Some(("service_tier", r#"["priority"]"#)),
            ),
            (Format::Chat, r#"{"service_tier":"flex"}"#, None),
            (Format::Chat, r#"{"service_tier":null}"#, None),
            (
                Format::Responses,
                r#"{"service_tier":"ultrafast"}"#,
                Some(("service_tier", "ultrafast")),
            ),
            (Format::Responses, r#"{"service_tier":"auto"}"#, None),
            (
                Format::Messages,
                r#"{"speed":"fast"}"#,
                Some(("speed", "fast")),
            ),
            (
                Format::Messages,
                r#"{"speed":"standard","service_tier":"standard_only"}"#,
                None,
            ),
            (
                Format::Messages,
                r#"{"inference_geo":"us"}"#,
                Some(("inference_geo", "us")),
            ),
            (
                Format::Messages,
                r#"{"inference_geo":"global","service_tier":"auto"}"#,
                None,
            ),
            (
                Format::Native,
                r#"{"serviceTier":"PRIORITY"}"#,
                Some(("serviceTier", "PRIORITY")),
            ),
            (
                Format::Native,
                r#"{"service_tier":"priority"}"#,
                Some(("service_tier", "priority")),
            ),
            (Format::Native, r#"{"serviceTier":"STANDARD"}"#, None),
            (Format::Images, r#"{"prompt":"x"}"#, None),
        ] {
            let setting = format.codec().dearer_setting(body.as_bytes()).expect(body);
            let setting = setting.map(|setting| (setting.field, setting.value));
            let setting = setting
                .as_ref()
                .map(|(field, value)| (*field, value.as_str()));
            assert_eq!(setting, found, "{body}");
        }
        let twice = br#"{"speed":"standard","speed":"fast"}"#;
        assert!(Format::Messages.codec().dearer_setting(twice).is_err());
        let other_case = br#"{"Speed":"fast"}"#;
        assert!(Format::Messages.codec().dearer_setting(other_case).is_err());
    }
}
