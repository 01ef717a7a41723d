//! Settings of a request for which an upstream has other prices: a faster service, or one in a certain place.

use super::multipart::MultipartField;
use crate::json::UniqueField;
use crate::model::truncated;

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

/// The fields of a body that choose another service, in most formats.
pub(super) const DEARER_FIELDS: &[&[&str]] = &[&["service_tier"], &["speed"], &["inference_geo"]];

/// Their values that have the usual prices.
pub(super) const USUAL_VALUES: &[&[&str]] = &[USUAL_TIERS, &["standard"], &["global"]];

/// Finds the first field of a form with another value than the usual ones, however it is spelled.
pub(super) fn find_dearer_in_form(fields: &[MultipartField<'_>]) -> Option<DearerSetting> {
    let settings = || DEARER_FIELDS.iter().zip(USUAL_VALUES);
    fields.iter().find_map(|field| {
        let name = field.names().next().unwrap_or_default();
        let name = name.replace(['_', '-'], "");
        let (names, usual) = settings().find(|(names, _)| {
            let known = names[0].replace('_', "");
            known.eq_ignore_ascii_case(&name)
        })?;
        let value = String::from_utf8_lossy(field.value);
        let is_usual = usual.iter().any(|usual| usual.eq_ignore_ascii_case(&value));
        (!is_usual).then(|| DearerSetting {
            field: names[0],
            value: truncated(&value).into_owned(),
            usual: usual[0],
        })
    })
}

/// Finds the first field with another value than the usual ones, of which the first is recommended. Their case does not
/// matter.
pub(super) fn find_dearer(
    fields: &[UniqueField<'_>],
    usual: &[&[&'static str]],
) -> Option<DearerSetting> {
    let mut settings = fields.iter().zip(usual);
    settings.find_map(|(field, usual)| dearer(field, usual))
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
            (Format::Chat, r#"{"speed":"fast"}"#, Some(("speed", "fast"))),
            (
                Format::Responses,
                r#"{"inference_geo":"us"}"#,
                Some(("inference_geo", "us")),
            ),
            (Format::Images, r#"{"prompt":"x"}"#, None),
            (
                Format::Images,
                r#"{"service_tier":"priority"}"#,
                Some(("service_tier", "priority")),
            ),
            (
                Format::Images,
                r#"{"speed":"fast"}"#,
                Some(("speed", "fast")),
            ),
            (
                Format::Images,
                r#"{"service_tier":"auto","speed":"standard"}"#,
                None,
            ),
            (
                Format::Images,
                "--b\r\nContent-Disposition: form-data; name=\"Service_Tier\"\r\n\r\npriority\r\n--b--\r\n",
                Some(("service_tier", "priority")),
            ),
            (
                Format::Images,
                "--b\r\nContent-Disposition: form-data; name=\"service_tier\"\r\n\r\nAuto\r\n--b--\r\n",
                None,
            ),
        ] {
            let findings = format.codec().findings(body.as_bytes());
            let setting = findings.dearer_setting().expect(body);
            let setting = setting.map(|setting| (setting.field, setting.value.as_str()));
            assert_eq!(setting, found, "{body}");
        }
        for (format, body) in [
            (Format::Messages, r#"{"speed":"standard","speed":"fast"}"#),
            (Format::Messages, r#"{"Speed":"fast"}"#),
            (Format::Images, r#"{"Service_tier":"priority"}"#),
            (
                Format::Native,
                r#"{"serviceTier":"standard","service_tier":"priority"}"#,
            ),
        ] {
            let findings = format.codec().findings(body.as_bytes());
            assert!(findings.dearer_setting().is_err(), "{body}");
        }
    }
}
