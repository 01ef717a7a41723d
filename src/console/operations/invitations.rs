//! Invitations: links with which somebody makes an account.

use super::input;
use super::people::PersonInput;
use super::session::{Begun, begin};
use super::sign_up;
use super::verification::send_verification;
use crate::config::SignUp;
use crate::console::actor::{ConsoleCall, now};
use crate::console::mail::MailText;
use crate::console::refusal::Refusal;
use crate::console::tokens::{NewToken, token_hash};
use crate::console::views::{CreatedInvitation, InvitationView, LinkView, Moment};
use crate::store::{InvitedTeam, LinkPurpose, NewLink, NewPerson, PersonRole, StoredLink};

/// For how long an invitation works, in milliseconds.
pub(super) const INVITED_FOR: i64 = 7 * 24 * 3600 * 1000;

/// Makes an invitation with a role. With an e-mail address the account gets that one.
pub async fn invite(
    call: &ConsoleCall,
    email: &str,
    role: PersonRole,
) -> Result<CreatedInvitation, Refusal> {
    call.check_admin()?;
    check_open(call)?;
    if role == PersonRole::Admin {
        call.check_stepped_up()?;
    }
    let token = NewToken::generate();
    let expires = now() + INVITED_FOR;
    let entry = call.audit("invitation.create", email, format!("role {}", role.word()));
    let email = input::email(email)?;
    let invitation = NewLink {
        email: email.clone(),
        role: Some(role),
        ..NewLink::new(LinkPurpose::Invite, token.sha256, expires)
    };
    let id = call.console.store.create_link(&invitation, &entry).await?;
    let url = call.console.url(&format!("/invitation/{}", token.token));
    let mailer = call.console.mailer().ok();
    let mailed_to = email.filter(|_| mailer.is_some());
    if let (Some(mailer), Some(email)) = (mailer, &mailed_to) {
        mailer.send(email, &MailText::invitation(call.texts, &entry.actor, &url));
    }
    Ok(CreatedInvitation {
        id,
        link: Some(invitation_link(url, expires)),
        mailed_to,
    })
}

/// The invitations that still work.
pub async fn list_invitations(call: &ConsoleCall) -> Result<Vec<InvitationView>, Refusal> {
    call.check_admin()?;
    let invitations = call.console.store.invitations().await?;
    Ok(invitations.into_iter().map(InvitationView::from).collect())
}

/// Ends an invitation.
pub async fn withdraw(call: &ConsoleCall, id: &str) -> Result<(), Refusal> {
    call.check_admin()?;
    let entry = call.audit("invitation.withdraw", id, String::new());
    match call
        .console
        .store
        .withdraw_invitation(id, None, &entry)
        .await?
    {
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}

/// What an invitation is for. Looking does not use it up.
pub async fn find_invitation(call: &ConsoleCall, token: &str) -> Result<InvitationView, Refusal> {
    let (_, link) = invitation(call, token).await?;
    Ok(InvitationView::from(link))
}

/// The invitation of an administrator, or the link for which somebody has asked by mail.
async fn invitation(call: &ConsoleCall, token: &str) -> Result<(LinkPurpose, StoredLink), Refusal> {
    check_open(call)?;
    let (store, sha256) = (&call.console.store, token_hash(token));
    if let Some(link) = store.link(LinkPurpose::Invite, &sha256).await? {
        return Ok((LinkPurpose::Invite, link));
    }
    let link = store.link(LinkPurpose::SignUp, &sha256).await?;
    let link = link.ok_or(Refusal::LinkOver)?;
    sign_up::check_open(call)?;
    Ok((LinkPurpose::SignUp, link))
}

/// Makes the account of an invited person, and signs in.
pub async fn accept(
    call: &ConsoleCall,
    token: &str,
    input: PersonInput,
    password: &str,
) -> Result<Begun, Refusal> {
    let (purpose, invitation) = invitation(call, token).await?;
    let handle = input::handle(&input.handle)?;
    // Who has the link has the address that it was sent to.
    let is_sent = match invitation.team {
        Some(_) => invitation.is_sent,
        None => call.console.mailer().is_ok(),
    };
    let is_verified = invitation.email.is_some() && is_sent;
    // Where there is mail, an address that was only typed is the person's once it is proven.
    let (email, unproven) = match invitation.email {
        Some(email) => (Some(email), None),
        None if call.console.mailer().is_ok() => (None, input::email(&input.email)?),
        None => (input::email(&input.email)?, None),
    };
    let person = NewPerson {
        display: input::display(&input.display, &handle)?,
        email,
        is_verified,
        password: Some(call.console.passwords.hash(password).await?),
        // The store takes that of the invitation.
        role: PersonRole::Viewer,
        handle,
    };
    let team = invitation.team.as_ref().map(membership_words);
    let entry = call.audit(
        "invitation.accept",
        &person.handle,
        team.unwrap_or_default(),
    );
    let (store, sha256) = (&call.console.store, token_hash(token));
    let used = store.use_invitation(purpose, &sha256, &person, &entry);
    let person = used.await?;
    if let Some(email) = unproven {
        // Where too many messages went there, the person asks again under *Account*.
        let _ = send_verification(call, person.clone(), email);
    }
    begin(call, &person, now()).await
}

/// The team of an invitation and the role there, for the audit log.
fn membership_words(team: &InvitedTeam) -> String {
    format!("team {}, role {}", team.name, team.role.word())
}

pub(super) const fn invitation_link(url: String, expires: i64) -> LinkView {
    LinkView {
        url,
        expires: Moment(expires),
    }
}

pub(super) fn check_open(call: &ConsoleCall) -> Result<(), Refusal> {
    match call.console.settings.sign_up {
        SignUp::Closed => Err(Refusal::SignUpClosed),
        SignUp::Invite | SignUp::Domains(_) | SignUp::Open => Ok(()),
    }
}
