//! Teams: made by administrators; their owners decide who belongs to them.

use super::accounts::find_team;
use super::attempt::SignInAttempt;
use super::team_invitations::invite_to_team;
use super::{accounts, input};
use crate::console::actor::{Actor, ConsoleCall};
use crate::console::refusal::{InputProblem, Refusal};
use crate::console::views::{AccountSpendingView, AddedMemberView, MemberView};
use crate::store::{AccountSummary, MembershipChange, MembershipRole, Person, StoredMember};

/// Makes a team. Its first owner is the named one, else who makes it; one of the command line has none at first.
pub async fn create_team(
    call: &ConsoleCall,
    name: &str,
    owner: &str,
) -> Result<AccountSpendingView, Refusal> {
    call.check_admin()?;
    call.check_stepped_up()?;
    let name = input::handle(name)?;
    let owner = match (owner.trim(), &call.actor) {
        ("", Actor::Person(signed_in)) => Some(signed_in.person.clone()),
        ("", _) => None,
        (owner, _) => Some(find_person(call, owner).await?),
    };
    let change = owner
        .as_ref()
        .map(|owner| format!("owner {}", owner.handle));
    let entry = call.audit("team.create", &name, change.unwrap_or_default());
    let owner = owner.as_ref().map(|owner| owner.id.as_str());
    call.console.store.create_team(&name, owner, &entry).await?;
    accounts::get_account(call, &name).await
}

/// Who belongs to a team, for everybody who does.
pub async fn list_members(call: &ConsoleCall, team: &str) -> Result<Vec<MemberView>, Refusal> {
    call.check_may_read(team).await?;
    let team = find_team(call, team).await?;
    let members = call.console.store.members(&team.id).await?;
    Ok(members.into_iter().map(MemberView::from).collect())
}

/// Adds somebody by username, or by e-mail address. Only administrators learn whose an address is: everybody else invites
/// it, whether somebody has it or not.
pub async fn add_member(
    call: &ConsoleCall,
    team: &str,
    who: &str,
    role: MembershipRole,
) -> Result<AddedMemberView, Refusal> {
    call.check_may_manage(team).await?;
    call.check_may_make(role)?;
    let account = find_team(call, team).await?;
    let person = match who.contains('@') {
        false => Some(find_person(call, who).await?),
        true if call.is_admin() => person_by_address(call, who).await?,
        true => None,
    };
    let Some(person) = person else {
        let invitation = invite_to_team(call, team, who, role).await?;
        return Ok(AddedMemberView {
            member: None,
            invitation: Some(invitation),
        });
    };
    let change = format!("{}, role {}", person.handle, role.word());
    let entry = call.audit("member.add", team, change);
    let store = &call.console.store;
    store.add_member(&account, &person.id, role, &entry).await?;
    Ok(AddedMemberView {
        member: Some(member(&person, role)),
        invitation: None,
    })
}

/// Changes what somebody may do in a team.
pub async fn change_member(
    call: &ConsoleCall,
    team: &str,
    handle: &str,
    role: MembershipRole,
) -> Result<MemberView, Refusal> {
    call.check_may_manage(team).await?;
    call.check_may_make(role)?;
    let account = find_team(call, team).await?;
    let person = find_member(call, handle).await?;
    check_may_unmake(call, &account, &person).await?;
    let change = format!("{}, role {}", person.handle, role.word());
    let entry = call.audit("member.change", team, change);
    let store = &call.console.store;
    let to = MembershipChange::Role(role);
    let may_orphan = call.is_admin();
    let changed = store.change_member(&account, &person.id, to, may_orphan, &entry);
    changed.await?;
    Ok(member(&person, role))
}

/// Ends a membership: an owner that of others, and everybody the own one.
pub async fn remove_member(call: &ConsoleCall, team: &str, handle: &str) -> Result<(), Refusal> {
    let own = call.signed_in().map(|signed_in| &signed_in.person.handle);
    match own {
        Ok(own) if own == handle => call.check_may_read(team).await?,
        _ => call.check_may_manage(team).await?,
    }
    let account = find_team(call, team).await?;
    let person = find_member(call, handle).await?;
    check_may_unmake(call, &account, &person).await?;
    let entry = call.audit("member.remove", team, person.handle.clone());
    let store = &call.console.store;
    let to = MembershipChange::Removal;
    let may_orphan = call.is_admin();
    let removed = store.change_member(&account, &person.id, to, may_orphan, &entry);
    Ok(removed.await?)
}

/// Who takes another owner's place away confirms the password, as who gives it.
async fn check_may_unmake(
    call: &ConsoleCall,
    team: &AccountSummary,
    person: &Person,
) -> Result<(), Refusal> {
    if call.signed_in().is_ok_and(|own| own.person.id == person.id) {
        return Ok(());
    }
    let members = call.console.store.members(&team.id).await?;
    let member = members.iter().find(|member| member.handle == person.handle);
    member.map_or(Ok(()), |member| call.check_may_make(member.role))
}

/// Somebody who may be added, by username. Names are not tried out at the speed of the machine.
async fn find_person(call: &ConsoleCall, handle: &str) -> Result<Person, Refusal> {
    let handle = input::handle(handle)?;
    let attempt = match call.is_admin() {
        true => None,
        false => Some(SignInAttempt::begin(call)?),
    };
    let person = call.console.store.person_by_login(&handle).await?;
    let person = person.filter(|person| person.disabled.is_none());
    let person = person.ok_or(InputProblem::PersonUnknown)?;
    if let Some(attempt) = attempt {
        attempt.give_back();
    }
    Ok(person)
}

/// Whose proven address it is.
async fn person_by_address(call: &ConsoleCall, email: &str) -> Result<Option<Person>, Refusal> {
    let email = input::email(email)?.ok_or(InputProblem::Email)?;
    let person = call.console.store.person_by_login(&email).await?;
    Ok(person.filter(|person| person.verified.is_some() && person.disabled.is_none()))
}

/// Somebody who may belong to a team, by username.
async fn find_member(call: &ConsoleCall, handle: &str) -> Result<Person, Refusal> {
    let person = call.console.store.person_by_login(handle).await?;
    let person = person.filter(|person| person.handle == handle);
    person.ok_or(Refusal::NotFound)
}

fn member(person: &Person, role: MembershipRole) -> MemberView {
    MemberView::from(StoredMember {
        handle: person.handle.clone(),
        display: person.display.clone(),
        role,
        is_disabled: person.disabled.is_some(),
    })
}
