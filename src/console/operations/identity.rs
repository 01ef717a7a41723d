//! Signing in at an identity provider.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::attempt::SignInAttempt;
use super::input;
use super::people::PersonInput;
use super::session::{Begun, Entered, begin, enter};
use crate::config::{SignUp, mail_address};
use crate::console::actor::{ConsoleCall, now};
use crate::console::identity::{BrowserFlow, IdentityProvider, ProvenIdentity, ProviderAnswer};
use crate::console::refusal::Refusal;
use crate::console::tokens::{NewToken, token_hash};
use crate::console::views::WelcomeView;
use crate::store::{
    ExternalIdentity, LinkPurpose, NewLink, NewPerson, Person, PersonChange, PersonRole, StoreError,
};

/// For how long somebody may choose a username, in milliseconds.
const WELCOME_FOR: i64 = 30 * 60 * 1000;

/// How long ago somebody may have signed in at the provider to confirm something, in milliseconds.
const FRESH_FOR: i64 = 5 * 60 * 1000;

/// What a visit to a provider is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlowPurpose {
    SignIn,
    /// To connect an identity with the person who is signed in.
    Link,
    /// To prove again who is signed in.
    Confirm,
}

impl FlowPurpose {
    const ALL: [FlowPurpose; 3] = [FlowPurpose::SignIn, FlowPurpose::Link, FlowPurpose::Confirm];

    const fn word(self) -> &'static str {
        match self {
            FlowPurpose::SignIn => "sign-in",
            FlowPurpose::Link => "link",
            FlowPurpose::Confirm => "confirm",
        }
    }

    pub fn from_word(word: &str) -> FlowPurpose {
        let known = FlowPurpose::ALL
            .into_iter()
            .find(|known| known.word() == word);
        known.unwrap_or(FlowPurpose::SignIn)
    }
}

/// A browser that goes to a provider.
pub struct Departure {
    pub url: String,
    /// What it keeps meanwhile.
    pub cookie: String,
}

/// A browser that comes back.
pub enum Arrival {
    Entered(Entered, String),
    /// There is no account yet; the token lets the person choose a username.
    Welcome(String),
    Linked,
    Confirmed(String),
}

/// Sends a browser to a provider.
pub async fn depart(
    call: &ConsoleCall,
    provider: &str,
    purpose: FlowPurpose,
    next: &str,
) -> Result<Departure, Refusal> {
    let provider = find(call, provider)?;
    let session = match purpose {
        FlowPurpose::SignIn => "",
        FlowPurpose::Link => {
            call.signed_in()?;
            call.check_stepped_up()?;
            &call.signed_in()?.session.id
        }
        FlowPurpose::Confirm => &call.signed_in()?.session.id,
    };
    let flow = BrowserFlow::generate(&provider.settings.name);
    let redirect = redirect(call, provider);
    let is_fresh = purpose == FlowPurpose::Confirm;
    let url = provider.sign_in_url(&flow, &redirect, is_fresh).await;
    let url = url.map_err(|reason| failed(provider, &reason))?;
    let next = URL_SAFE_NO_PAD.encode(next);
    Ok(Departure {
        url,
        cookie: format!("{}.{}.{next}.{session}", flow.secret(), purpose.word()),
    })
}

/// Takes in a browser that comes back from a provider, with the cookie that it left with.
pub async fn arrive(
    call: &ConsoleCall,
    provider: &str,
    cookie: &str,
    answer: &ProviderAnswer,
) -> Result<Arrival, Refusal> {
    let provider = find(call, provider)?;
    let attempt = SignInAttempt::begin(call)?;
    let mut parts = cookie.splitn(4, '.');
    let mut part = || parts.next().unwrap_or_default();
    let flow = BrowserFlow::of(part().to_owned(), &provider.settings.name);
    let purpose = FlowPurpose::from_word(part());
    let next = URL_SAFE_NO_PAD.decode(part()).unwrap_or_default();
    let next = String::from_utf8(next).unwrap_or_default();
    let session = part();
    if flow.secret().is_empty() {
        return Err(failed(provider, "this browser has no cookie of a sign-in"));
    }
    let redirect = redirect(call, provider);
    let redeemed = provider.redeem(&flow, answer, &redirect);
    let identity = redeemed.await;
    let identity = identity.map_err(|reason| failed(provider, &reason))?;
    attempt.give_back();
    if purpose == FlowPurpose::SignIn {
        return sign_in(call, provider, identity, next).await;
    }
    let signed_in = call.signed_in()?;
    if signed_in.session.id != session {
        return Err(failed(provider, "the session is another one now"));
    }
    match purpose {
        FlowPurpose::Link => link(call, &signed_in.person, provider, &identity).await,
        FlowPurpose::Confirm | FlowPurpose::SignIn => {
            confirm(call, provider, &identity).await?;
            Ok(Arrival::Confirmed(next))
        }
    }
}

fn find<'c>(call: &'c ConsoleCall, name: &str) -> Result<&'c IdentityProvider, Refusal> {
    let mut providers = call.console.identity.iter();
    let found = providers.find(|provider| provider.settings.name == name);
    found.ok_or(Refusal::NotFound)
}

fn redirect(call: &ConsoleCall, provider: &IdentityProvider) -> String {
    let name = &provider.settings.name;
    call.console.url(&format!("/identity/{name}/callback"))
}

/// The reason is for the log: it may tell of others.
fn failed(provider: &IdentityProvider, reason: &str) -> Refusal {
    log::warn!("identity provider {}: {reason}", provider.settings.name);
    Refusal::IdentityFailed
}

fn key(identity: &ProvenIdentity) -> ExternalIdentity {
    ExternalIdentity {
        issuer: identity.issuer.clone(),
        subject: identity.subject.clone(),
    }
}

/// The address, if the provider has proven it and is trusted to.
fn proven_email(provider: &IdentityProvider, identity: &ProvenIdentity) -> Option<String> {
    let is_proven = identity.is_email_verified && provider.settings.trust_email;
    let email = identity.email.as_ref().filter(|_| is_proven);
    email.and_then(|email| mail_address(email).ok())
}

async fn sign_in(
    call: &ConsoleCall,
    provider: &IdentityProvider,
    identity: ProvenIdentity,
    next: String,
) -> Result<Arrival, Refusal> {
    let store = &call.console.store;
    let person = match store.person_of_identity(&key(&identity)).await? {
        Some(person) => person,
        None => match person_by_address(call, provider, &identity).await? {
            Some(person) => person,
            None => return welcome_link(call, provider, identity).await,
        },
    };
    if person.disabled.is_some() {
        return Err(Refusal::AccountDisabled);
    }
    let person = with_role(call, provider, &identity, person).await?;
    let fresh = identity.signed_in_at.map_or(now(), |at| at.min(now()));
    let entered = enter(call, &person, fresh).await?;
    Ok(Arrival::Entered(entered, next))
}

/// The person who has the same proven address here, with whom the identity is connected from now on.
async fn person_by_address(
    call: &ConsoleCall,
    provider: &IdentityProvider,
    identity: &ProvenIdentity,
) -> Result<Option<Person>, Refusal> {
    let Some(email) = proven_email(provider, identity) else {
        return Ok(None);
    };
    let store = &call.console.store;
    let Some(person) = store.person_by_login(&email).await? else {
        return Ok(None);
    };
    // Somebody else may have typed the address, and would share the account.
    if person.verified.is_none() {
        return Err(Refusal::AddressUnproven);
    }
    let change = format!("{} by address", provider.settings.name);
    let entry = call.audit("identity.link", &person.handle, change);
    let own = key(identity);
    let linked = store.link_identity(&person.id, &own, Some(&email), &entry);
    linked.await?;
    Ok(Some(person))
}

/// Whether the config makes somebody an administrator.
fn is_admin(call: &ConsoleCall, provider: &IdentityProvider, identity: &ProvenIdentity) -> bool {
    let by_address = proven_email(provider, identity)
        .is_some_and(|email| call.console.settings.admins.contains(&email));
    let group = provider.settings.admins_group.as_ref();
    by_address || group.is_some_and(|group| identity.groups.contains(group))
}

/// Gives somebody the role that the config and the provider's groups say. The last administrator stays one.
async fn with_role(
    call: &ConsoleCall,
    provider: &IdentityProvider,
    identity: &ProvenIdentity,
    person: Person,
) -> Result<Person, Refusal> {
    let has_groups = provider.settings.admins_group.is_some();
    let role = match (is_admin(call, provider, identity), person.role) {
        (true, PersonRole::Member | PersonRole::Viewer) => PersonRole::Admin,
        (false, PersonRole::Admin) if has_groups => PersonRole::Member,
        _ => return Ok(person),
    };
    let change = format!("role {} by {}", role.word(), provider.settings.name);
    let entry = call.audit("person.change", &person.handle, change);
    let edit = PersonChange {
        role: Some(role),
        ..PersonChange::default()
    };
    match call
        .console
        .store
        .change_person(&person.id, &edit, &entry)
        .await
    {
        Ok(person) => Ok(person),
        Err(StoreError::LastAdministrator) => Ok(person),
        Err(error) => Err(error.into()),
    }
}

/// Lets somebody choose a username, where accounts may be made.
async fn welcome_link(
    call: &ConsoleCall,
    provider: &IdentityProvider,
    identity: ProvenIdentity,
) -> Result<Arrival, Refusal> {
    let email = proven_email(provider, &identity);
    let is_admin = is_admin(call, provider, &identity);
    let settings = &call.console.settings;
    let may_join = match &settings.sign_up {
        SignUp::Open => true,
        SignUp::Domains(_) => email
            .as_ref()
            .is_some_and(|email| settings.sign_up.accepts(email)),
        SignUp::Closed | SignUp::Invite => false,
    };
    if !may_join && !is_admin {
        return Err(Refusal::SignUpClosed);
    }
    let token = NewToken::generate();
    let link = NewLink {
        email,
        role: Some(match is_admin {
            true => PersonRole::Admin,
            false => PersonRole::Member,
        }),
        identity: Some(key(&identity)),
        display: identity.name.or(identity.username),
        ..NewLink::new(LinkPurpose::Welcome, token.sha256, now() + WELCOME_FOR)
    };
    let entry = call.audit("identity.welcome", &provider.settings.name, String::new());
    call.console.store.create_link(&link, &entry).await?;
    Ok(Arrival::Welcome(token.token))
}

/// What is known of somebody who may make an account. Looking uses nothing up.
pub async fn find_welcome(call: &ConsoleCall, token: &str) -> Result<WelcomeView, Refusal> {
    let store = &call.console.store;
    let link = store.link(LinkPurpose::Welcome, &token_hash(token)).await?;
    let link = link.ok_or(Refusal::LinkOver)?;
    Ok(WelcomeView {
        email: link.email,
        display: link.display.unwrap_or_default(),
    })
}

/// Makes the account of somebody who has signed in at a provider.
pub async fn welcome(
    call: &ConsoleCall,
    token: &str,
    input: PersonInput,
) -> Result<Begun, Refusal> {
    let known = find_welcome(call, token).await?;
    let handle = input::handle(&input.handle)?;
    let person = NewPerson {
        display: input::display(&input.display, &handle)?,
        is_verified: known.email.is_some(),
        email: known.email,
        password: None,
        // The store takes that of the link.
        role: PersonRole::Viewer,
        handle,
    };
    let entry = call.audit("identity.sign_up", &person.handle, String::new());
    let store = &call.console.store;
    let sha256 = token_hash(token);
    let made = store.use_invitation(LinkPurpose::Welcome, &sha256, &person, &entry);
    begin(call, &made.await?, now()).await
}

async fn link(
    call: &ConsoleCall,
    person: &Person,
    provider: &IdentityProvider,
    identity: &ProvenIdentity,
) -> Result<Arrival, Refusal> {
    let name = provider.settings.name.clone();
    let entry = call.audit("identity.link", &person.handle, name);
    let email = identity.email.as_deref();
    let store = &call.console.store;
    store
        .link_identity(&person.id, &key(identity), email, &entry)
        .await?;
    Ok(Arrival::Linked)
}

/// Notes that somebody has signed in at the provider again.
async fn confirm(
    call: &ConsoleCall,
    provider: &IdentityProvider,
    identity: &ProvenIdentity,
) -> Result<(), Refusal> {
    let signed_in = call.signed_in()?;
    let store = &call.console.store;
    let owner = store.person_of_identity(&key(identity)).await?;
    if owner.is_none_or(|owner| owner.id != signed_in.person.id) {
        return Err(failed(provider, "somebody else has signed in there"));
    }
    let at = identity.signed_in_at.unwrap_or_else(now);
    if now() - at > FRESH_FOR {
        return Err(failed(provider, "it has not asked for a sign-in again"));
    }
    store.step_up_session(&signed_in.session.id, now()).await?;
    Ok(())
}
