//! Invitations: links with which somebody makes an account.

use super::input;
use super::people::PersonInput;
use super::session::Begun;
use crate::config::SignUp;
use crate::console::actor::{ConsoleCall, now};
use crate::console::refusal::Refusal;
use crate::console::sessions;
use crate::console::tokens::{NewToken, token_hash};
use crate::console::views::{CreatedInvitation, InvitationView, LinkView, Moment, PersonView};
use crate::store::{LinkPurpose, NewInvitation, NewPerson, PersonRole};

/// For how long an invitation works, in milliseconds.
const INVITED_FOR: i64 = 7 * 24 * 3600 * 1000;

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
    let invitation = NewInvitation {
        sha256: token.sha256,
        email: input::email(email)?,
        role,
        made_by: entry.actor.clone(),
        expires,
    };
    let id = call
        .console
        .store
        .create_invitation(&invitation, &entry)
        .await?;
    Ok(CreatedInvitation {
        id,
        link: LinkView {
            url: call.console.url(&format!("/invitation/{}", token.token)),
            expires: Moment(expires),
        },
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
    match call.console.store.withdraw_invitation(id, &entry).await? {
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}

/// What an invitation is for. Looking does not use it up.
pub async fn find_invitation(call: &ConsoleCall, token: &str) -> Result<InvitationView, Refusal> {
    check_open(call)?;
    let store = &call.console.store;
    let link = store.link(LinkPurpose::Invite, &token_hash(token)).await?;
    link.map(InvitationView::from).ok_or(Refusal::LinkOver)
}

/// Makes the account of an invited person, and signs in.
pub async fn accept(
    call: &ConsoleCall,
    token: &str,
    input: PersonInput,
    password: &str,
) -> Result<Begun, Refusal> {
    let invitation = find_invitation(call, token).await?;
    let handle = input::handle(&input.handle)?;
    let email = match invitation.email {
        Some(email) => Some(email),
        None => input::email(&input.email)?,
    };
    let person = NewPerson {
        display: input::display(&input.display, &handle)?,
        email,
        password: Some(call.console.passwords.hash(password).await?),
        // The store takes that of the invitation.
        role: PersonRole::Viewer,
        handle,
    };
    let entry = call.audit("invitation.accept", &person.handle, String::new());
    let (store, sha256) = (&call.console.store, token_hash(token));
    let person = store.use_invitation(&sha256, &person, &entry).await?;
    let token = sessions::begin(call, &person).await?;
    Ok(Begun {
        person: PersonView::from(&person),
        token,
    })
}

fn check_open(call: &ConsoleCall) -> Result<(), Refusal> {
    match call.console.settings.sign_up {
        SignUp::Closed => Err(Refusal::SignUpClosed),
        SignUp::Invite | SignUp::Open => Ok(()),
    }
}
