//! What operations return: serialised by the API, rendered by the pages.

mod account;
mod alert;
mod audit;
mod catalog;
mod fidelity;
mod home;
mod identity;
mod inspection;
mod loaded_config;
mod marked_text;
mod play;
mod request;
mod team;
mod translation;
mod upstream;
mod usage;
mod values;

pub use account::{AccountSpendingView, AccountView};
pub use alert::{AlertRecipientView, AlertTestView, AlertView, AlertWithSecret, url_host};
pub use audit::{AuditLineView, AuditView};
pub use catalog::{ClientLossesView, ModelView, ModelsView, PriceView};
pub use fidelity::{FidelityLossView, FidelityPairView, FidelityView, GatewayScoreView};
pub use home::{ErrorCountView, HomeView, SnippetView, TodayView};
pub use identity::{IdentityView, ProviderView, WelcomeView};
pub use inspection::{CaptureView, InspectionView, MessageView, TimelineEventView};
pub use loaded_config::LoadedConfigView;
pub use marked_text::{Mark, MarkedText, clipped};
pub use play::{PlayEventView, PlayKeyView, PlayOptionsView, PlayOutcomeView};
pub use request::{BillLineView, Difference, RequestLineView, RequestView, RequestsView};
pub use team::{AddedMemberView, MemberView, MembershipView};
pub use translation::{LossView, TranslationRefusal, TranslationView};
pub use upstream::UpstreamView;
pub use usage::{NamedUsage, UsageSumView, UsageView};
pub use values::{Decimal, Moment};

use jiff::Timestamp;
use serde::Serialize;

use crate::config::{KeyConfig, Reset};
use crate::model::{Money, Spending};
use crate::runtime::period_end;
use crate::store::{Person, StoredKey, StoredLink, StoredSession};

/// A key, without its secret.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct KeyView {
    pub id: String,
    /// `ACCOUNT/LABEL`, as usage and logs name it.
    pub name: String,
    pub label: String,
    pub account: String,
    /// The start of the secret.
    pub prefix: String,
    /// Unlimited Quota: there is no spending cap.
    pub unlimited_quota: bool,
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub spending_cap: Option<Decimal>,
    /// `none`, `daily` or `monthly`.
    pub reset: &'static str,
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    pub resets_at: Option<Moment>,
    /// In the period of the cap, as far as it is recorded.
    #[cfg_attr(test, schema(value_type = f64))]
    pub spent: Decimal,
    /// Reserved by this gateway for requests in flight.
    #[cfg_attr(test, schema(value_type = f64))]
    pub held: Decimal,
    /// Neither spent nor held.
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub left: Option<Decimal>,
    /// Globs; null: every model.
    pub models: Option<Vec<String>>,
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
    pub concurrency: Option<u64>,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub created: Moment,
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    pub expires: Option<Moment>,
    /// Until when the secret before the last rotation works.
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    pub previous_until: Option<Moment>,
    /// Null: the command line.
    pub made_by: Option<String>,
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    pub last_used: Option<Moment>,
    /// The account is disabled, and so is the key.
    pub disabled: bool,
}

/// What a key has used.
#[derive(Debug, Clone, Copy, Default)]
pub struct KeyUse {
    pub spending: Spending,
    pub held: Money,
    pub last_used: Option<i64>,
}

impl KeyUse {
    /// What was spent in the period of a cap.
    const fn spent(&self, reset: Reset) -> Money {
        match reset {
            Reset::Never => self.spending.total,
            Reset::Monthly => self.spending.month,
            Reset::Daily => self.spending.day,
        }
    }
}

impl KeyView {
    pub fn new(key: StoredKey, used: KeyUse, now: i64) -> KeyView {
        let settings = key.settings;
        let spent = used.spent(settings.reset);
        let cap = settings.spending_cap.map(|cap| cap.money);
        let timestamp = Timestamp::from_millisecond(now).unwrap_or(Timestamp::UNIX_EPOCH);
        let label = settings.name.strip_prefix(&key.account);
        let label = label.and_then(|rest| rest.strip_prefix('/'));
        KeyView {
            id: key.id,
            label: label.unwrap_or(&settings.name).to_owned(),
            account: key.account,
            prefix: key.prefix,
            unlimited_quota: cap.is_none(),
            spending_cap: cap.map(Decimal),
            reset: settings.reset.word(),
            resets_at: period_end(settings.reset, timestamp)
                .map(|end| Moment(end.as_millisecond())),
            spent: Decimal(spent),
            held: Decimal(used.held),
            left: cap.map(|cap| Decimal(cap.saturating_sub(spent).saturating_sub(used.held))),
            models: settings.models,
            requests_per_minute: settings.limits.requests_per_minute,
            tokens_per_minute: settings.limits.tokens_per_minute,
            concurrency: settings.limits.concurrency,
            name: settings.name,
            created: Moment(key.created),
            expires: key.expires.map(Moment),
            previous_until: key
                .previous
                .filter(|previous| previous.until > now)
                .map(|previous| Moment(previous.until)),
            made_by: key.made_by,
            last_used: used.last_used.map(Moment),
            disabled: key.is_disabled,
        }
    }

    /// How much of the cap is used, in percent.
    pub fn percent(&self) -> u8 {
        percent(self.spending_cap, self.spent)
    }
}

fn percent(cap: Option<Decimal>, spent: Decimal) -> u8 {
    let Some(cap) = cap else {
        return 0;
    };
    let (cap, spent) = (cap.0.to_f64(), spent.0.to_f64());
    match cap > 0.0 {
        true => (spent / cap * 100.0).clamp(0.0, 100.0) as u8,
        false => 100,
    }
}

/// A key of the config file.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ConfigKeyView {
    pub id: String,
    pub name: String,
    /// Where the file has it.
    pub line: u64,
    pub unlimited_quota: bool,
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub spending_cap: Option<Decimal>,
    /// `none`, `daily` or `monthly`.
    pub reset: &'static str,
    /// In the period of the cap, as far as it is recorded.
    #[cfg_attr(test, schema(value_type = f64))]
    pub spent: Decimal,
    /// Reserved by this gateway for requests in flight.
    #[cfg_attr(test, schema(value_type = f64))]
    pub held: Decimal,
    /// Neither spent nor held.
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub left: Option<Decimal>,
    /// Globs; null: every model.
    pub models: Option<Vec<String>>,
    pub requests_per_minute: Option<u64>,
    pub tokens_per_minute: Option<u64>,
    pub concurrency: Option<u64>,
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    pub last_used: Option<Moment>,
}

impl ConfigKeyView {
    pub fn new(id: String, key: &KeyConfig, used: KeyUse) -> ConfigKeyView {
        let cap = key.spending_cap.as_ref().map(|cap| cap.money);
        let spent = used.spent(key.reset);
        ConfigKeyView {
            id,
            name: key.name.clone(),
            line: key.line.unwrap_or_default(),
            unlimited_quota: cap.is_none(),
            spending_cap: cap.map(Decimal),
            reset: key.reset.word(),
            spent: Decimal(spent),
            held: Decimal(used.held),
            left: cap.map(|cap| Decimal(cap.saturating_sub(spent).saturating_sub(used.held))),
            models: key.models.clone(),
            requests_per_minute: key.limits.requests_per_minute,
            tokens_per_minute: key.limits.tokens_per_minute,
            concurrency: key.limits.concurrency,
            last_used: used.last_used.map(Moment),
        }
    }

    /// How much of the cap is used, in percent.
    pub fn percent(&self) -> u8 {
        percent(self.spending_cap, self.spent)
    }
}

/// A key, with the secret that is shown this once.
#[derive(Debug, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct KeyWithSecret {
    #[serde(flatten)]
    pub key: KeyView,
    pub secret: String,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PersonView {
    pub id: String,
    /// The username; it never changes.
    pub handle: String,
    pub display: String,
    pub email: Option<String>,
    /// It was proven that the address is the person's.
    pub verified: bool,
    /// `admin`, `member` or `viewer`.
    pub role: &'static str,
    pub disabled: bool,
    /// False until a password is chosen.
    pub has_password: bool,
    /// Signing in takes a code too.
    pub second_factor: bool,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub created: Moment,
    #[cfg_attr(test, schema(value_type = Option<String>, format = DateTime))]
    pub seen: Option<Moment>,
}

impl From<&Person> for PersonView {
    fn from(person: &Person) -> PersonView {
        PersonView {
            id: person.id.clone(),
            handle: person.handle.clone(),
            display: person.display.clone(),
            email: person.email.clone(),
            verified: person.verified.is_some(),
            role: person.role.word(),
            disabled: person.disabled.is_some(),
            has_password: person.password.is_some(),
            second_factor: person.totp.is_some(),
            created: Moment(person.created),
            seen: person.seen.map(Moment),
        }
    }
}

/// A link that works once.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct LinkView {
    pub url: String,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub expires: Moment,
}

/// A person who was created, with the link to choose a password.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct CreatedPerson {
    #[serde(flatten)]
    pub person: PersonView,
    pub link: LinkView,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SessionView {
    pub id: String,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub created: Moment,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub seen: Moment,
    pub remote: String,
    pub agent: String,
    /// It is the one of this request.
    pub current: bool,
}

impl SessionView {
    pub fn new(session: StoredSession, current: &str) -> SessionView {
        SessionView {
            current: session.id == current,
            id: session.id,
            created: Moment(session.created),
            seen: Moment(session.seen),
            remote: session.remote,
            agent: session.agent,
        }
    }
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct InvitationView {
    pub id: String,
    pub email: Option<String>,
    /// What the person may do in the console.
    pub role: &'static str,
    /// The team that it is an invitation to.
    pub team: Option<String>,
    /// The role in the team: `owner`, `member` or `viewer`.
    pub team_role: Option<&'static str>,
    pub made_by: String,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub created: Moment,
    #[cfg_attr(test, schema(value_type = String, format = DateTime))]
    pub expires: Moment,
}

impl From<StoredLink> for InvitationView {
    fn from(link: StoredLink) -> InvitationView {
        InvitationView {
            id: link.id,
            email: link.email,
            role: link.role.map_or("member", |role| role.word()),
            team_role: link.team.as_ref().map(|team| team.role.word()),
            team: link.team.map(|team| team.name),
            made_by: link.made_by,
            created: Moment(link.created),
            expires: Moment(link.expires),
        }
    }
}

/// An invitation that was made, with its link.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct CreatedInvitation {
    pub id: String,
    /// Null: it was sent, and is for nobody else's eyes.
    pub link: Option<LinkView>,
    /// The address that the link was sent to.
    pub mailed_to: Option<String>,
}

/// One's own second factor.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SecondFactorView {
    pub enabled: bool,
    pub recovery_codes_left: i64,
}

/// The secret that an app reads; it counts once a code of it was entered.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct SecondFactorSetup {
    /// In base 32.
    pub secret: String,
    /// `otpauth://`, as apps read it.
    pub url: String,
    /// The same as a picture, in a `data:` URL.
    pub picture: String,
}

/// An address that a link is for.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct AddressView {
    pub email: String,
}
