//! The form of a key: what people type becomes a change, and a key becomes what a form shows.

use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::config::{MemberKeys, Reset};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{KeyView, Moment};
use crate::model::Money;
use crate::store::KeyChange;

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct KeyForm {
    pub label: String,
    /// `cap` or `unlimited`.
    pub quota: String,
    pub cap: String,
    pub reset: String,
    /// A glob on each line.
    pub models: String,
    pub requests_per_minute: String,
    pub tokens_per_minute: String,
    pub concurrency: String,
    /// The last day on which the key works.
    pub expires: String,
}

impl KeyForm {
    /// The form of a new key.
    pub fn new(allowed: &MemberKeys) -> KeyForm {
        KeyForm {
            quota: "cap".to_owned(),
            cap: allowed.cap_default.written.clone(),
            reset: Reset::Monthly.word().to_owned(),
            ..KeyForm::default()
        }
    }

    pub fn of(key: &KeyView) -> KeyForm {
        let count = |count: Option<u64>| count.map(|count| count.to_string()).unwrap_or_default();
        KeyForm {
            label: key.label.clone(),
            quota: match key.unlimited_quota {
                true => "unlimited".to_owned(),
                false => "cap".to_owned(),
            },
            cap: key
                .spending_cap
                .map(|cap| cap.to_string())
                .unwrap_or_default(),
            reset: key.reset.to_owned(),
            models: key
                .models
                .as_ref()
                .map(|globs| globs.join("\n"))
                .unwrap_or_default(),
            requests_per_minute: count(key.requests_per_minute),
            tokens_per_minute: count(key.tokens_per_minute),
            concurrency: count(key.concurrency),
            // It expires when that day is over.
            expires: key
                .expires
                .map(|Moment(at)| Moment(at - 1).day())
                .unwrap_or_default(),
        }
    }

    /// The change that the form asks for. A field that is empty means that there is none.
    pub fn change(&self) -> Result<KeyChange, Refusal> {
        let is_unlimited = self.quota == "unlimited";
        let cap = match is_unlimited {
            true => None,
            false => Some(Money::parse(self.cap.trim()).ok_or(InputProblem::Cap)?),
        };
        let reset = match is_unlimited {
            true => Reset::Never,
            false => Reset::from_word(&self.reset).ok_or(InputProblem::Reset)?,
        };
        let globs = self.models.split(['\n', ',']).map(str::trim);
        let globs: Vec<String> = globs
            .filter(|glob| !glob.is_empty())
            .map(str::to_owned)
            .collect();
        Ok(KeyChange {
            account: None,
            spending_cap: Some(cap),
            reset: Some(reset),
            models: Some((!globs.is_empty() && globs != ["*"]).then_some(globs)),
            requests_per_minute: Some(count(&self.requests_per_minute, "requests_per_minute")?),
            tokens_per_minute: Some(count(&self.tokens_per_minute, "tokens_per_minute")?),
            concurrency: Some(count(&self.concurrency, "concurrency")?),
            expires: Some(last_day(&self.expires)?),
        })
    }
}

fn count(text: &str, field: &'static str) -> Result<Option<u64>, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let count = text.parse().ok().filter(|count| *count > 0);
    count
        .map(Some)
        .ok_or_else(|| InputProblem::Count(field).into())
}

/// The end of a day, in milliseconds since 1970.
fn last_day(text: &str) -> Result<Option<i64>, Refusal> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(None);
    }
    let day = text.parse::<Date>().and_then(|day| day.tomorrow());
    let end = day.and_then(|next| next.to_zoned(TimeZone::UTC));
    let end = end.map_err(|_| InputProblem::Expiry)?;
    Ok(Some(end.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form() -> KeyForm {
        KeyForm {
            quota: "cap".to_owned(),
            cap: "25.50".to_owned(),
            reset: "monthly".to_owned(),
            models: "acme-*\r\nsmall, large\n".to_owned(),
            requests_per_minute: " 60 ".to_owned(),
            expires: "2030-01-31".to_owned(),
            ..KeyForm::default()
        }
    }

    #[test]
    fn a_form_becomes_a_change() {
        let change = form().change().expect("a change");
        assert_eq!(change.spending_cap, Some(Money::parse("25.5")));
        assert_eq!(change.reset, Some(Reset::Monthly));
        let globs = ["acme-*", "small", "large"].map(str::to_owned).to_vec();
        assert_eq!(change.models, Some(Some(globs)));
        assert_eq!(change.requests_per_minute, Some(Some(60)));
        assert_eq!(change.tokens_per_minute, Some(None));
        // The first moment of the next day.
        assert_eq!(change.expires, Some(Some(1_896_134_400_000)));
    }

    #[test]
    fn unlimited_quota_has_no_amount_and_no_reset() {
        let form = KeyForm {
            quota: "unlimited".to_owned(),
            cap: "nonsense".to_owned(),
            ..form()
        };
        let change = form.change().expect("a change");
        assert_eq!(
            (change.spending_cap, change.reset),
            (Some(None), Some(Reset::Never))
        );
    }

    #[test]
    fn wrong_fields_are_named() {
        let wrong = |edit: fn(&mut KeyForm)| {
            let mut form = form();
            edit(&mut form);
            match form.change() {
                Err(Refusal::Invalid(problem)) => problem.field(),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(wrong(|form| form.cap = "-1".to_owned()), "spending_cap");
        assert_eq!(wrong(|form| form.cap = String::new()), "spending_cap");
        assert_eq!(wrong(|form| form.reset = "weekly".to_owned()), "reset");
        assert_eq!(
            wrong(|form| form.concurrency = "0".to_owned()),
            "concurrency"
        );
        assert_eq!(
            wrong(|form| form.expires = "tomorrow".to_owned()),
            "expires"
        );
    }
}
