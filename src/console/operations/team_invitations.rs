//! Invitations to teams: made by their owners, taken up with an account or to make one.

use super::accounts::find_team;
use super::input;
use super::invitations::{INVITED_FOR, check_open, invitation_link};
use super::mail::take_turn;
use crate::config::SignUp;
use crate::console::actor::{ConsoleCall, now};
use crate::console::mail::MailText;
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::tokens::{NewToken, token_hash};
use crate::console::views::{CreatedInvitation, InvitationView, MembershipView};
use crate::store::{
    AccountSummary, InvitedTeam, LinkPurpose, MembershipRole, NewLink, Person, PersonRole,
    StoredLink,
};

/// How many open invitations a team may have.
const MAX_INVITATIONS: usize = 50;

/// Makes an invitation to a team; with an e-mail address it is for that one. A new account of it is a member of the console.
/// What is sent is shown to administrators only: else an owner could prove an address that is another's.
pub async fn invite_to_team(
    call: &ConsoleCall,
    team: &str,
    email: &str,
    role: MembershipRole,
) -> Result<CreatedInvitation, Refusal> {
    call.check_may_manage(team).await?;
    check_open(call)?;
    call.check_may_make(role)?;
    let account = find_team(call, team).await?;
    if account.is_disabled {
        return Err(InputProblem::TeamDisabled.into());
    }
    let email = input::email(email)?;
    check_domain(call, email.as_deref())?;
    let open = call.console.store.team_invitations(&account.id).await?;
    if open.len() >= MAX_INVITATIONS {
        return Err(Refusal::TooManyInvitations(MAX_INVITATIONS));
    }
    let mailer = call.console.mailer().ok();
    let mail = mailer.zip(email.as_deref());
    if let (Some((_, email)), false) = (mail, call.is_admin()) {
        take_turn(call, email)?;
    }
    let token = NewToken::generate();
    let expires = now() + INVITED_FOR;
    let team = invited_team(account, role);
    let whom = email.as_deref().unwrap_or("whoever has the link");
    let change = format!("{whom}, role {}", role.word());
    let entry = call.audit("invitation.create", &team.name, change);
    let invitation = NewLink {
        email: email.clone(),
        role: Some(PersonRole::Member),
        team: Some(team.clone()),
        is_sent: mail.is_some(),
        ..NewLink::new(LinkPurpose::Invite, token.sha256, expires)
    };
    let id = call.console.store.create_link(&invitation, &entry).await?;
    let url = call.console.url(&format!("/invitation/{}", token.token));
    if let Some((mailer, email)) = mail {
        let text = MailText::team_invitation(call.texts, &entry.actor, &team.name, &url);
        mailer.send(email, &text);
    }
    let is_shown = mail.is_none() || call.is_admin();
    Ok(CreatedInvitation {
        id,
        link: is_shown.then(|| invitation_link(url, expires)),
        mailed_to: mail.map(|(_, email)| email.to_owned()),
    })
}

/// The invitations to a team that still work, for its owners.
pub async fn list_team_invitations(
    call: &ConsoleCall,
    team: &str,
) -> Result<Vec<InvitationView>, Refusal> {
    call.check_may_manage(team).await?;
    let team = find_team(call, team).await?;
    let invitations = call.console.store.team_invitations(&team.id).await?;
    Ok(invitations.into_iter().map(InvitationView::from).collect())
}

/// Ends an invitation to a team.
pub async fn withdraw_from_team(call: &ConsoleCall, team: &str, id: &str) -> Result<(), Refusal> {
    call.check_may_manage(team).await?;
    let account = find_team(call, team).await?;
    let entry = call.audit("invitation.withdraw", team, id.to_owned());
    let store = &call.console.store;
    let withdrawn = store.withdraw_invitation(id, Some(&account.id), &entry);
    match withdrawn.await? {
        true => Ok(()),
        false => Err(Refusal::NotFound),
    }
}

/// Joins a team by the link of an invitation, with the account that one has.
pub async fn join_team(call: &ConsoleCall, token: &str) -> Result<MembershipView, Refusal> {
    let person = &call.signed_in()?.person;
    check_open(call)?;
    let (store, sha256) = (&call.console.store, token_hash(token));
    let link = store.link(LinkPurpose::Invite, &sha256).await?;
    let team = link.and_then(|link| link.team).ok_or(Refusal::LinkOver)?;
    let entry = call.audit("member.join", &team.name, joined_words(person, &team));
    store.join_team(&sha256, person, &entry).await?;
    Ok(membership(&team))
}

/// The invitations to teams that are for one's own proven address.
pub async fn list_own_invitations(call: &ConsoleCall) -> Result<Vec<InvitationView>, Refusal> {
    let invitations = own_invitations(call).await?;
    Ok(invitations.into_iter().map(InvitationView::from).collect())
}

/// Joins a team that one's own proven address was invited to.
pub async fn take_up_invitation(call: &ConsoleCall, id: &str) -> Result<MembershipView, Refusal> {
    let team = own_invitation(call, id).await?;
    let person = &call.signed_in()?.person;
    let entry = call.audit("member.join", &team.name, joined_words(person, &team));
    let store = &call.console.store;
    store.join_team_by_address(id, person, &entry).await?;
    Ok(membership(&team))
}

/// Ends an invitation that is for one's own proven address.
pub async fn decline_invitation(call: &ConsoleCall, id: &str) -> Result<(), Refusal> {
    let team = own_invitation(call, id).await?;
    let person = &call.signed_in()?.person;
    let entry = call.audit("invitation.decline", &team.name, person.handle.clone());
    let store = &call.console.store;
    Ok(store.decline_invitation(id, person, &entry).await?)
}

async fn own_invitations(call: &ConsoleCall) -> Result<Vec<StoredLink>, Refusal> {
    let person = &call.signed_in()?.person;
    let proven = person
        .email
        .as_deref()
        .filter(|_| person.verified.is_some());
    match (proven, check_open(call)) {
        (Some(email), Ok(())) => Ok(call.console.store.invitations_to(email).await?),
        _ => Ok(Vec::new()),
    }
}

/// The team of an invitation that is for one's own proven address.
async fn own_invitation(call: &ConsoleCall, id: &str) -> Result<InvitedTeam, Refusal> {
    let mut invitations = own_invitations(call).await?.into_iter();
    let found = invitations.find(|invitation| invitation.id == id);
    found.and_then(|link| link.team).ok_or(Refusal::NotFound)
}

/// An owner who is no administrator lets nobody in whom `sign_up` keeps out.
fn check_domain(call: &ConsoleCall, email: Option<&str>) -> Result<(), Refusal> {
    let sign_up = &call.console.settings.sign_up;
    let is_of_domain = email.is_some_and(|email| sign_up.accepts(email));
    match sign_up {
        SignUp::Domains(_) if !is_of_domain && !call.is_admin() => Err(InputProblem::Domain.into()),
        SignUp::Domains(_) | SignUp::Closed | SignUp::Invite | SignUp::Open => Ok(()),
    }
}

fn invited_team(account: AccountSummary, role: MembershipRole) -> InvitedTeam {
    InvitedTeam {
        id: account.id,
        name: account.name,
        role,
    }
}

fn joined_words(person: &Person, team: &InvitedTeam) -> String {
    format!("{}, role {}", person.handle, team.role.word())
}

fn membership(team: &InvitedTeam) -> MembershipView {
    MembershipView {
        account: team.name.clone(),
        role: team.role.word(),
    }
}
