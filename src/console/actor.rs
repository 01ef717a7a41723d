//! Who asks for an operation, and from where.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use jiff::Timestamp;

use super::refusal::Refusal;
use super::state::Console;
use super::texts::{ENGLISH, Texts};
use crate::store::{AuditEntry, COMMAND_LINE, MembershipRole, Person, PersonRole, StoredSession};

/// For how long a password that was entered need not be entered again, in milliseconds.
const STEPPED_UP_FOR: i64 = 15 * 60 * 1000;

/// Who asks.
#[derive(Debug, Clone)]
pub enum Actor {
    /// Nobody is signed in.
    Anonymous,
    Person(Box<SignedIn>),
    /// Whoever can read the config and write the store.
    CommandLine,
}

/// A person and the session.
#[derive(Debug, Clone)]
pub struct SignedIn {
    pub person: Person,
    pub session: StoredSession,
}

/// Through what an operation was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    Pages,
    Api,
    CommandLine,
}

impl Via {
    const fn word(self) -> &'static str {
        match self {
            Via::Pages => "console",
            Via::Api => "api",
            Via::CommandLine => "cli",
        }
    }
}

/// One call of an operation.
#[derive(Clone)]
pub struct ConsoleCall {
    pub console: Arc<Console>,
    pub actor: Actor,
    pub via: Via,
    pub remote: Option<IpAddr>,
    /// The browser, as it calls itself.
    pub agent: String,
    /// The language of messages that the operation sends.
    pub texts: &'static Texts,
}

impl ConsoleCall {
    pub fn on_command_line(console: Arc<Console>) -> ConsoleCall {
        ConsoleCall {
            console,
            actor: Actor::CommandLine,
            via: Via::CommandLine,
            remote: None,
            agent: String::new(),
            texts: &ENGLISH,
        }
    }

    /// Who is signed in.
    pub fn signed_in(&self) -> Result<&SignedIn, Refusal> {
        match &self.actor {
            Actor::Person(signed_in) => Ok(signed_in),
            Actor::Anonymous | Actor::CommandLine => Err(Refusal::SignInNeeded),
        }
    }

    /// Everybody but who is not signed in goes on.
    pub const fn check_known(&self) -> Result<(), Refusal> {
        match &self.actor {
            Actor::Person(_) | Actor::CommandLine => Ok(()),
            Actor::Anonymous => Err(Refusal::SignInNeeded),
        }
    }

    /// Only administrators and the command line go on.
    pub fn check_admin(&self) -> Result<(), Refusal> {
        match &self.actor {
            Actor::CommandLine => Ok(()),
            Actor::Person(signed_in) if signed_in.person.role == PersonRole::Admin => Ok(()),
            Actor::Person(_) => Err(Refusal::Forbidden),
            Actor::Anonymous => Err(Refusal::SignInNeeded),
        }
    }

    pub fn is_admin(&self) -> bool {
        self.check_admin().is_ok()
    }

    /// The password was entered a short time ago.
    pub fn check_stepped_up(&self) -> Result<(), Refusal> {
        match &self.actor {
            Actor::CommandLine => Ok(()),
            Actor::Person(signed_in) => {
                let since = now() - signed_in.session.stepped_up;
                match since < STEPPED_UP_FOR {
                    true => Ok(()),
                    false => Err(Refusal::ConfirmPassword),
                }
            }
            Actor::Anonymous => Err(Refusal::SignInNeeded),
        }
    }

    /// The actor may see the keys of an account. To everybody else the account does not exist.
    pub async fn check_may_read(&self, account: &str) -> Result<(), Refusal> {
        match self.role_in(account).await? {
            Some(_) => Ok(()),
            None => Err(Refusal::NotFound),
        }
    }

    /// The actor may change the keys of an account.
    pub async fn check_may_write(&self, account: &str) -> Result<(), Refusal> {
        match self.role_in(account).await? {
            Some(MembershipRole::Owner | MembershipRole::Member) => Ok(()),
            Some(MembershipRole::Viewer) => Err(Refusal::Forbidden),
            None => Err(Refusal::NotFound),
        }
    }

    /// The actor may change what is of a whole account, such as who belongs to it.
    pub async fn check_may_manage(&self, account: &str) -> Result<(), Refusal> {
        match self.role_in(account).await? {
            Some(MembershipRole::Owner) => Ok(()),
            Some(MembershipRole::Member | MembershipRole::Viewer) => Err(Refusal::Forbidden),
            None => Err(Refusal::NotFound),
        }
    }

    /// What the actor may do in an account that exists; administrators may do what its owners may.
    pub async fn role_in(&self, account: &str) -> Result<Option<MembershipRole>, Refusal> {
        if self.is_admin() {
            let is_there = self.console.store.has_account(account).await?;
            return Ok(is_there.then_some(MembershipRole::Owner));
        }
        let person = &self.signed_in()?.person;
        let membership = self.console.store.membership(&person.id, account).await?;
        Ok(membership.map(|role| person.role_of(role)))
    }

    /// What the actor may do by own memberships, by the ids of the accounts.
    pub async fn own_roles(&self) -> Result<HashMap<String, MembershipRole>, Refusal> {
        let Ok(signed_in) = self.signed_in() else {
            return Ok(HashMap::new());
        };
        let person = &signed_in.person;
        let roles = self.console.store.memberships(&person.id).await?;
        let roles = roles.into_iter();
        Ok(roles.map(|(id, role)| (id, person.role_of(role))).collect())
    }

    /// Owners decide over others: making one takes the password.
    pub fn check_may_make(&self, role: MembershipRole) -> Result<(), Refusal> {
        match role {
            MembershipRole::Owner => self.check_stepped_up(),
            MembershipRole::Member | MembershipRole::Viewer => Ok(()),
        }
    }

    /// A line of the audit log.
    pub fn audit(&self, action: &'static str, target: &str, change: String) -> AuditEntry {
        let actor = match &self.actor {
            Actor::Person(signed_in) => signed_in.person.handle.clone(),
            Actor::CommandLine => COMMAND_LINE.to_owned(),
            Actor::Anonymous => String::new(),
        };
        AuditEntry {
            actor,
            via: self.via.word(),
            action,
            target: target.to_owned(),
            change,
            remote: self.remote_text(),
        }
    }

    pub fn remote_text(&self) -> String {
        self.remote
            .map(|remote| remote.to_string())
            .unwrap_or_default()
    }
}

/// Milliseconds since 1970.
pub fn now() -> i64 {
    Timestamp::now().as_millisecond()
}
