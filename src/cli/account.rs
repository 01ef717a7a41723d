//! `omniglot account`: the people who may sign in to the console. The first administrator is made here.

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};

use super::config_file::ConfigFile;
use super::key::{Limit, parse_cap, parse_reset};
use super::output::print;
use super::store_session::{StoreSession, plain_table};
use crate::config::Reset;
use crate::console::operations::accounts::{self, AccountEdit};
use crate::console::operations::people::{self, PersonEdit, PersonInput};
use crate::console::operations::{keys, teams};
use crate::console::{AccountView, LinkView, PersonView};
use crate::model::Money;
use crate::store::PersonRole;

#[derive(Debug, Subcommand)]
pub(super) enum AccountCommand {
    /// Create an account; its person chooses a password by the link that is printed
    Create(NewAccount),
    /// List the people who have an account
    List {
        /// List the teams instead
        #[arg(long)]
        teams: bool,
        /// Print a JSON array
        #[arg(long)]
        json: bool,
    },
    /// Print a new link to choose a password, for somebody who has lost it
    Link {
        /// The username
        name: String,
    },
    /// Set what all keys of an account may spend together; it holds above the caps of the keys
    Cap {
        /// The name of the account: a username, or that of a team
        name: String,
        /// Spending cap, in the currency of the prices; or `unlimited`
        #[arg(value_name = "AMOUNT", value_parser = parse_cap)]
        cap: Limit<Money>,
        /// When the spending starts again at zero, in UTC: none, daily or monthly
        #[arg(long, value_parser = parse_reset)]
        reset: Option<Reset>,
    },
    /// Disable an account: its sessions end, and its keys are refused
    Disable {
        /// The username, or the name of a team
        name: String,
    },
    /// Enable an account again
    Enable {
        /// The username, or the name of a team
        name: String,
    },
}

#[derive(Debug, Args)]
pub(super) struct NewAccount {
    /// The username or the name of the team; it begins the names of the keys and never changes
    name: String,
    /// What the person may do: admin, member or viewer
    #[arg(long, default_value = "member", value_parser = parse_role)]
    role: PersonRole,
    /// The e-mail address, which the person may sign in with too
    #[arg(long, value_name = "ADDRESS", default_value = "")]
    email: String,
    /// Make a team, which has keys and members, and nobody signs in as
    #[arg(long, conflicts_with_all = ["role", "email"])]
    team: bool,
    /// The first owner of the team, who adds others
    #[arg(long, value_name = "USERNAME", default_value = "", requires = "team")]
    owner: String,
}

fn parse_role(text: &str) -> Result<PersonRole, String> {
    PersonRole::from_word(text).ok_or_else(|| "admin, member or viewer".to_owned())
}

pub(super) fn run(command: AccountCommand, file: ConfigFile) -> Result<ExitCode> {
    let session = match StoreSession::open(file)? {
        Ok(session) => session,
        Err(code) => return Ok(code),
    };
    match command {
        AccountCommand::Create(new) if new.team => create_team(&session, &new)?,
        AccountCommand::Create(new) => create(&session, new)?,
        AccountCommand::List { teams: true, json } => list_teams(&session, json)?,
        AccountCommand::List { teams: false, json } => list(&session, json)?,
        AccountCommand::Link { name } => {
            let link = session.run_on_console(async |call| {
                let person = people::find_person(call, &name).await?;
                people::create_setup_link(call, &person.id).await
            });
            print(&link_text(&link.with_context(|| name.clone())?))?;
        }
        AccountCommand::Cap { name, cap, reset } => set_cap(&session, &name, cap, reset)?,
        AccountCommand::Disable { name } => {
            set_disabled(&session, &name, true)?;
            print(&format!(
                "{name} is disabled: every gateway refuses its keys within 5 seconds"
            ))?;
        }
        AccountCommand::Enable { name } => {
            set_disabled(&session, &name, false)?;
            print(&format!("{name} is enabled"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn create(session: &StoreSession, new: NewAccount) -> Result<()> {
    let input = PersonInput {
        handle: new.name,
        display: String::new(),
        email: new.email,
    };
    let made =
        session.run_on_console(async |call| people::create_person(call, input, new.role).await)?;
    print(&format!(
        "{} is created as {}.\n\n{}",
        made.person.handle,
        made.person.role,
        link_text(&made.link)
    ))
}

fn create_team(session: &StoreSession, new: &NewAccount) -> Result<()> {
    let made = session
        .run_on_console(async |call| teams::create_team(call, &new.name, &new.owner).await)?;
    let name = &made.account.name;
    print(&match made.account.members {
        0 => format!(
            "{name} is created as a team. An administrator adds its members in the console."
        ),
        _ => format!(
            "{name} is created as a team, with {} as its owner.",
            new.owner
        ),
    })
}

fn link_text(link: &LinkView) -> String {
    format!(
        "{}\n\nWhoever opens this link first chooses the password. It works once, until {}.",
        link.url, link.expires
    )
}

fn set_cap(
    session: &StoreSession,
    name: &str,
    Limit(cap): Limit<Money>,
    reset: Option<Reset>,
) -> Result<()> {
    let edit = AccountEdit {
        spending_cap: Some(cap),
        reset,
        ..AccountEdit::default()
    };
    let changed =
        session.run_on_console(async |call| accounts::change_account(call, name, edit).await);
    let changed = changed.with_context(|| name.to_owned())?;
    let (account, spent) = (&changed.account, changed.spent);
    print(&match (account.spending_cap, changed.left) {
        (Some(cap), Some(left)) => format!(
            "{name} has a spending cap of {cap}, reset {}: {spent} spent, {left} left",
            account.reset
        ),
        _ => format!("{name} has no spending cap: {spent} spent"),
    })
}

fn set_disabled(session: &StoreSession, name: &str, disabled: bool) -> Result<()> {
    let changed = session.run_on_console(async |call| {
        let account = accounts::get_account(call, name).await;
        if account.is_ok_and(|account| account.account.is_team()) {
            let edit = AccountEdit {
                disabled: Some(disabled),
                ..AccountEdit::default()
            };
            return accounts::change_account(call, name, edit).await.map(|_| ());
        }
        let edit = PersonEdit {
            disabled: Some(disabled),
            ..PersonEdit::default()
        };
        let person = people::find_person(call, name).await?;
        let changed = people::change_person(call, &person.id, edit).await;
        changed.map(|_| ())
    });
    changed.with_context(|| name.to_owned())?;
    Ok(())
}

fn list(session: &StoreSession, json: bool) -> Result<()> {
    let people = session.run_on_console(async |call| people::list_people(call).await)?;
    if json {
        let text = serde_json::to_string_pretty(&people);
        return print(&text.context("the people cannot be written as JSON")?);
    }
    let mut table = plain_table(&["name", "role", "e-mail", "state", "created", "last seen"]);
    for person in &people {
        table.add_row([
            person.handle.clone(),
            person.role.to_owned(),
            person.email.clone().unwrap_or_else(|| "-".to_owned()),
            state(person).to_owned(),
            person.created.to_string(),
            person
                .seen
                .map_or_else(|| "never".to_owned(), |seen| seen.to_string()),
        ]);
    }
    print(&table.trim_fmt())
}

fn list_teams(session: &StoreSession, json: bool) -> Result<()> {
    let accounts = session.run_on_console(async |call| keys::list_accounts(call).await)?;
    let teams: Vec<AccountView> = accounts.into_iter().filter(AccountView::is_team).collect();
    if json {
        let text = serde_json::to_string_pretty(&teams);
        return print(&text.context("the teams cannot be written as JSON")?);
    }
    let mut table = plain_table(&["name", "members", "keys", "cap", "reset", "state"]);
    for team in &teams {
        table.add_row([
            team.name.clone(),
            team.members.to_string(),
            team.keys.to_string(),
            team.spending_cap
                .map_or_else(|| "unlimited".to_owned(), |cap| cap.to_string()),
            team.reset.to_owned(),
            if team.disabled { "disabled" } else { "active" }.to_owned(),
        ]);
    }
    print(&table.trim_fmt())
}

const fn state(person: &PersonView) -> &'static str {
    match (person.disabled, person.has_password) {
        (true, _) => "disabled",
        (false, false) => "no password yet",
        (false, true) => "active",
    }
}
