//! Why an operation is refused: the same reasons for the API and the pages, with a status and a code.

use std::time::Duration;

use crate::store::StoreError;

/// An operation that was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Nobody is signed in.
    SignInNeeded,
    /// No such login, or not its password: the answer does not tell which.
    WrongLogin,
    /// The code of the second factor is not valid, or was used.
    WrongCode,
    /// There is a second factor already.
    SecondFactorOn,
    /// The actor may not do this.
    Forbidden,
    /// The password has to be entered again first.
    ConfirmPassword,
    /// It does not exist, or the actor may not know of it.
    NotFound,
    SignUpClosed,
    /// The answer of an identity provider cannot be used; the log says why.
    IdentityFailed,
    /// The identity belongs to somebody else.
    IdentityTaken,
    /// An account has the address, but it is not proven there.
    AddressUnproven,
    AccountDisabled,
    /// There is no other way to sign in.
    LastIdentity,
    /// The console sends no mail.
    MailOff,
    /// The config turns the inspector off.
    InspectorOff,
    /// No listener of the gateway can be asked from here.
    PlayUnavailable,
    /// An account is made by a link in a mail.
    MailFirst,
    LinkOver,
    Invalid(InputProblem),
    HandleTaken,
    EmailTaken,
    LabelTaken,
    LastAdministrator,
    /// A team would have no owner any more.
    LastOwner,
    /// The person belongs to the team already.
    AlreadyMember,
    TooManyKeys(u64),
    TooManyAlerts(usize),
    /// A team has as many open invitations as may be.
    TooManyInvitations(usize),
    TooManyAttempts(Duration),
    /// The store does not answer.
    Unavailable,
}

/// A field of the input that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InputProblem {
    Handle,
    Display,
    Email,
    /// Accounts are for addresses of other domains.
    Domain,
    PasswordShort,
    PasswordLong,
    Label,
    /// The name of a key never changes.
    LabelFixed,
    Cap,
    /// A member needs a cap.
    CapNeeded,
    /// The most that a member may give.
    CapAboveMax(String),
    Reset,
    ResetWithoutCap,
    /// The account belongs to nobody.
    AccountWithoutOwner,
    /// Only the account of a team can have or do this.
    TeamNeeded,
    /// Nobody is invited to a team that is disabled.
    TeamDisabled,
    /// A role in a team.
    TeamRole,
    /// Nobody has the username.
    PersonUnknown,
    Models,
    /// The field of a limit.
    Count(&'static str),
    Expiry,
    ExpiryPast,
    /// In days.
    ExpiryAboveMax(u64),
    Overlap,
    Role,
    /// The field of a day.
    Day(&'static str),
    /// The first day is behind the last one, or there are more days between them than this.
    DayRange(u32),
    /// No place in a list.
    Cursor,
    /// `request`, `response` or `stream`.
    BodyKind,
    /// The field of a format.
    Format(&'static str),
    /// What the value of a capability may be.
    Capability(String),
    /// In KiB.
    InputTooLarge(usize),
    /// What the input becomes. In KiB.
    OutputTooLarge(usize),
    /// A setting of the translation, of which all together may have so many characters.
    SettingsTooLong(usize),
    /// Thresholds are whole percents, and so many at most.
    Percents(usize),
    /// An alert is about a key or an account.
    AlertSubject,
    /// An alert goes to one of a person, an address and a webhook.
    AlertTarget,
    /// Nobody of the account with a proven address has the username.
    AlertPerson,
    /// The URL of a webhook is not public.
    Webhook,
    /// There is nothing to send.
    Message,
    /// The body is not the JSON that is expected.
    Body(String),
}

impl InputProblem {
    /// The field, as the API names it.
    pub fn field(&self) -> &'static str {
        match self {
            InputProblem::Handle => "handle",
            InputProblem::Display => "display",
            InputProblem::Email | InputProblem::Domain => "email",
            InputProblem::PasswordShort | InputProblem::PasswordLong => "password",
            InputProblem::Label | InputProblem::LabelFixed => "label",
            InputProblem::Cap
            | InputProblem::CapNeeded
            | InputProblem::CapAboveMax(_)
            | InputProblem::AccountWithoutOwner => "spending_cap",
            InputProblem::Reset | InputProblem::ResetWithoutCap => "reset",
            InputProblem::Models => "models",
            InputProblem::Count(field) => field,
            InputProblem::Expiry | InputProblem::ExpiryPast | InputProblem::ExpiryAboveMax(_) => {
                "expires"
            }
            InputProblem::Overlap => "overlap_seconds",
            InputProblem::Role | InputProblem::TeamRole => "role",
            InputProblem::TeamNeeded | InputProblem::TeamDisabled => "account",
            InputProblem::PersonUnknown => "person",
            InputProblem::Day(field) => field,
            InputProblem::DayRange(_) => "from",
            InputProblem::Cursor => "after",
            InputProblem::BodyKind => "kind",
            InputProblem::Format(field) => field,
            InputProblem::Capability(_) => "capabilities",
            InputProblem::InputTooLarge(_) | InputProblem::OutputTooLarge(_) => "input",
            InputProblem::SettingsTooLong(_) => "capabilities",
            InputProblem::Percents(_) => "percents",
            InputProblem::AlertSubject => "key",
            InputProblem::AlertTarget | InputProblem::AlertPerson => "person",
            InputProblem::Webhook => "webhook",
            InputProblem::Message => "turns",
            InputProblem::Body(_) => "body",
        }
    }
}

impl Refusal {
    pub const fn status(&self) -> u16 {
        match self {
            Refusal::SignInNeeded | Refusal::WrongLogin | Refusal::WrongCode => 401,
            Refusal::Forbidden
            | Refusal::ConfirmPassword
            | Refusal::SignUpClosed
            | Refusal::IdentityFailed
            | Refusal::AddressUnproven
            | Refusal::AccountDisabled
            | Refusal::MailFirst => 403,
            Refusal::NotFound | Refusal::MailOff | Refusal::InspectorOff => 404,
            Refusal::HandleTaken
            | Refusal::EmailTaken
            | Refusal::LabelTaken
            | Refusal::LastAdministrator
            | Refusal::LastOwner
            | Refusal::AlreadyMember
            | Refusal::TooManyInvitations(_)
            | Refusal::SecondFactorOn
            | Refusal::IdentityTaken
            | Refusal::LastIdentity
            | Refusal::TooManyKeys(_)
            | Refusal::TooManyAlerts(_) => 409,
            Refusal::LinkOver => 410,
            Refusal::Invalid(_) => 400,
            Refusal::TooManyAttempts(_) => 429,
            Refusal::Unavailable | Refusal::PlayUnavailable => 503,
        }
    }

    /// The name of the reason in the API.
    pub const fn code(&self) -> &'static str {
        match self {
            Refusal::SignInNeeded => "sign_in_needed",
            Refusal::WrongLogin => "wrong_login",
            Refusal::WrongCode => "wrong_code",
            Refusal::SecondFactorOn => "second_factor_on",
            Refusal::Forbidden => "forbidden",
            Refusal::ConfirmPassword => "confirm_password",
            Refusal::NotFound => "not_found",
            Refusal::SignUpClosed => "sign_up_closed",
            Refusal::IdentityFailed => "identity_failed",
            Refusal::IdentityTaken => "identity_taken",
            Refusal::AddressUnproven => "address_unproven",
            Refusal::AccountDisabled => "account_disabled",
            Refusal::LastIdentity => "last_identity",
            Refusal::MailOff => "mail_off",
            Refusal::InspectorOff => "inspector_off",
            Refusal::PlayUnavailable => "play_unavailable",
            Refusal::MailFirst => "mail_first",
            Refusal::LinkOver => "link_over",
            Refusal::Invalid(_) => "invalid",
            Refusal::HandleTaken => "handle_taken",
            Refusal::EmailTaken => "email_taken",
            Refusal::LabelTaken => "label_taken",
            Refusal::LastAdministrator => "last_administrator",
            Refusal::LastOwner => "last_owner",
            Refusal::AlreadyMember => "already_member",
            Refusal::TooManyInvitations(_) => "too_many_invitations",
            Refusal::TooManyKeys(_) => "too_many_keys",
            Refusal::TooManyAlerts(_) => "too_many_alerts",
            Refusal::TooManyAttempts(_) => "too_many_attempts",
            Refusal::Unavailable => "unavailable",
        }
    }
}

impl From<InputProblem> for Refusal {
    fn from(problem: InputProblem) -> Refusal {
        Refusal::Invalid(problem)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        match error {
            StoreError::HandleTaken(_) => Refusal::HandleTaken,
            StoreError::EmailTaken(_) => Refusal::EmailTaken,
            StoreError::NameTaken(_) => Refusal::LabelTaken,
            StoreError::NoSuchKey(_) | StoreError::NoSuchPerson(_) => Refusal::NotFound,
            StoreError::LastAdministrator => Refusal::LastAdministrator,
            StoreError::LastOwner => Refusal::LastOwner,
            StoreError::AlreadyMember => Refusal::AlreadyMember,
            StoreError::LinkOver => Refusal::LinkOver,
            StoreError::IdentityTaken => Refusal::IdentityTaken,
            StoreError::LastIdentity => Refusal::LastIdentity,
            StoreError::TooManyKeys(max) => Refusal::TooManyKeys(max),
            StoreError::TooManyAlerts(max) => Refusal::TooManyAlerts(max),
            StoreError::ResetWithoutCap => InputProblem::ResetWithoutCap.into(),
            other => {
                log::error!("console: {other}");
                Refusal::Unavailable
            }
        }
    }
}
