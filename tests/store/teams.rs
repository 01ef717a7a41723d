//! Teams and invitations to them in the store.

use omniglot::store::{
    AccountSummary, AuditEntry, InvitedTeam, KeyChange, LinkPurpose, MembershipChange,
    MembershipRole, NewLink, NewPerson, Person, PersonChange, PersonRole, Store, StoreError,
};
use omniglot_test_support::Database;
use rstest::rstest;

use crate::TestStore;

/// Far in the future.
const LATER: i64 = 4_000_000_000_000;

fn new_person(handle: &str, role: PersonRole) -> NewPerson {
    NewPerson {
        handle: handle.to_owned(),
        display: handle.to_owned(),
        email: Some(format!("{handle}@example.org")),
        is_verified: true,
        password: Some("hash".to_owned()),
        role,
    }
}

async fn create(store: &Store, handle: &str) -> Person {
    let person = new_person(handle, PersonRole::Member);
    let made = store.create_person(&person, &AuditEntry::default()).await;
    made.expect("a person")
}

async fn create_team(store: &Store, name: &str, owner: &Person) -> AccountSummary {
    let entry = AuditEntry::default();
    let made = store.create_team(name, Some(&owner.id), &entry).await;
    made.expect("a team");
    let account = store.account(name).await.expect("an answer");
    account.expect("the team")
}

async fn roles(store: &Store, team: &AccountSummary) -> Vec<(String, MembershipRole)> {
    let members = store.members(&team.id).await.expect("members");
    let members = members.into_iter();
    members.map(|member| (member.handle, member.role)).collect()
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn a_team_has_members_and_keeps_an_owner(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (ada, bob) = (create(&store, "ada").await, create(&store, "bob").await);
    let team = create_team(&store, "research", &ada).await;
    assert!(team.is_team() && team.has_owner());
    let entry = AuditEntry::default();
    for name in ["research", "ada"] {
        let taken = store.create_team(name, None, &entry).await;
        assert!(matches!(taken, Err(StoreError::HandleTaken(_))), "{name}");
    }
    let taken = new_person("research", PersonRole::Member);
    let taken = store.create_person(&taken, &entry);
    assert!(matches!(taken.await, Err(StoreError::HandleTaken(_))));
    let viewer = MembershipRole::Viewer;
    let added = store.add_member(&team, &bob.id, viewer, &entry).await;
    added.expect("added");
    let again = store.add_member(&team, &bob.id, viewer, &entry).await;
    assert!(matches!(again, Err(StoreError::AlreadyMember)));
    let of_bob = store.memberships(&bob.id).await.expect("memberships");
    assert_eq!(of_bob.get(&team.id), Some(&viewer));
    assert_eq!(of_bob.len(), 2, "and the own account");
    let change = async |person: &Person, change, may_orphan| {
        let changed = store.change_member(&team, &person.id, change, may_orphan, &entry);
        changed.await
    };
    let removal = MembershipChange::Removal;
    let lower = MembershipChange::Role(MembershipRole::Member);
    for what in [removal, lower] {
        let refused = change(&ada, what, false).await;
        assert!(matches!(refused, Err(StoreError::LastOwner)));
    }
    assert_eq!(roles(&store, &team).await.len(), 2, "nothing was changed");
    // Somebody who is disabled is no owner who could do anything.
    let owner = MembershipChange::Role(MembershipRole::Owner);
    change(&bob, owner, false).await.expect("changed");
    let disabled = PersonChange {
        is_disabled: Some(true),
        ..PersonChange::default()
    };
    let boss = new_person("boss", PersonRole::Admin);
    store.create_person(&boss, &entry).await.expect("a person");
    let changed = store.change_person(&bob.id, &disabled, &entry).await;
    changed.expect("disabled");
    let refused = change(&ada, removal, false).await;
    assert!(matches!(refused, Err(StoreError::LastOwner)));
    change(&ada, removal, true).await.expect("removed");
    let left = roles(&store, &team).await;
    assert_eq!(left, [("bob".to_owned(), MembershipRole::Owner)]);
    let gone = change(&ada, removal, true).await;
    assert!(matches!(gone, Err(StoreError::NoSuchPerson(_))));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn the_keys_of_a_disabled_team_are_refused(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let ada = create(&store, "ada").await;
    create(&store, "bob").await;
    let team = create_team(&store, "research", &ada).await;
    let make = async |label: &str, by: &str| {
        let entry = AuditEntry {
            actor: by.to_owned(),
            ..AuditEntry::default()
        };
        let change = KeyChange {
            account: Some("research".to_owned()),
            ..KeyChange::default()
        };
        let name = format!("research/{label}");
        store
            .create_owned_key(&name, &change, Some(1), &entry)
            .await
    };
    let (key, _) = make("a", "ada").await.expect("a key");
    let second = make("b", "ada").await;
    assert!(matches!(second, Err(StoreError::TooManyKeys(1))));
    make("b", "bob").await.expect("everybody has a count");
    let hash = key.settings.sha256;
    let found = store.key(&hash).await.expect("an answer").expect("a key");
    let owner = found.owner.expect("an owner: its keys count together");
    assert_eq!(owner.id, team.id);
    let entry = AuditEntry::default();
    for (is_disabled, is_found) in [(true, false), (false, true)] {
        let before = store.keys_since(0).await.expect("keys");
        let revision = before.last().expect("a key").revision;
        let done = store.disable_team("research", is_disabled, &entry).await;
        done.expect("changed");
        let found = store.key(&hash).await.expect("an answer");
        assert_eq!(found.is_some(), is_found);
        let told = store.keys_since(revision).await.expect("changes");
        assert_eq!(told.len(), 2, "gateways learn of both keys");
    }
}

fn invitation(team: &AccountSummary, token: u8, email: Option<&str>) -> NewLink {
    NewLink {
        email: email.map(str::to_owned),
        role: Some(PersonRole::Member),
        team: Some(InvitedTeam {
            id: team.id.clone(),
            name: team.name.clone(),
            role: MembershipRole::Member,
        }),
        ..NewLink::new(LinkPurpose::Invite, [token; 32], LATER)
    }
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_to_a_team_is_taken_up_once(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (ada, bob) = (create(&store, "ada").await, create(&store, "bob").await);
    let team = create_team(&store, "research", &ada).await;
    let entry = AuditEntry {
        actor: "ada".to_owned(),
        ..AuditEntry::default()
    };
    for (token, email) in [(1, None), (2, Some("bob@example.org")), (3, None)] {
        let link = invitation(&team, token, email);
        store.create_link(&link, &entry).await.expect("a link");
    }
    let open = store.team_invitations(&team.id).await.expect("a list");
    assert_eq!(open.len(), 3, "none ends another");
    let tries: Vec<_> = ["c1", "c2", "c3", "c4"]
        .map(|handle| {
            let (store, entry) = (store.clone(), entry.clone());
            tokio::spawn(async move {
                let person = create(&store, handle).await;
                store.join_team(&[1; 32], &person, &entry).await
            })
        })
        .into();
    let mut joined = 0;
    for one in tries {
        joined += u32::from(one.await.expect("no panic").is_ok());
    }
    assert_eq!(joined, 1);
    // By the address, and by nobody else's.
    let to_bob = store.invitations_to("bob@example.org").await;
    let to_bob = to_bob.expect("a list");
    assert_eq!(to_bob.len(), 1);
    let id = &to_bob[0].id;
    let foreign = store.join_team_by_address(id, &ada, &entry).await;
    assert!(matches!(foreign, Err(StoreError::LinkOver)));
    let joined = store.join_team_by_address(id, &bob, &entry).await;
    joined.expect("joined");
    let again = store.decline_invitation(id, &bob, &entry).await;
    assert!(matches!(again, Err(StoreError::LinkOver)));
    // A new account comes with the membership, or not at all.
    let taken = new_person("bob", PersonRole::Member);
    let invite = LinkPurpose::Invite;
    let refused = store.use_invitation(invite, &[3; 32], &taken, &entry).await;
    assert!(matches!(refused, Err(StoreError::HandleTaken(_))));
    let eve = new_person("eve", PersonRole::Admin);
    let made = store.use_invitation(invite, &[3; 32], &eve, &entry).await;
    let eve = made.expect("a person");
    assert_eq!(eve.role, PersonRole::Member);
    let role = store.membership(&eve.id, "research").await;
    assert_eq!(role.expect("an answer"), Some(MembershipRole::Member));
}

#[rstest]
#[case::sqlite(Database::Sqlite)]
#[ignore = "needs PostgreSQL"]
#[case::postgresql(Database::Postgres)]
#[tokio::test]
async fn an_invitation_stands_as_long_as_its_maker_may_invite(#[case] database: Database) {
    let test_store = TestStore::new(database);
    let store = test_store.open().await;
    let (ada, bob) = (create(&store, "ada").await, create(&store, "bob").await);
    let team = create_team(&store, "research", &ada).await;
    let other = create_team(&store, "design", &bob).await;
    let entry = |actor: &str| AuditEntry {
        actor: actor.to_owned(),
        ..AuditEntry::default()
    };
    for (token, maker) in [(1, "bob"), (2, "ada"), (3, "(command line)"), (4, "gone")] {
        let link = invitation(&team, token, Some("eve@example.org"));
        let made = store.create_link(&link, &entry(maker)).await;
        made.expect("a link");
    }
    let stands = async |token: u8| {
        let link = store.link(LinkPurpose::Invite, &[token; 32]).await;
        link.expect("an answer").is_some()
    };
    // An owner of another team is none of this one.
    let found = [
        stands(1).await,
        stands(2).await,
        stands(3).await,
        stands(4).await,
    ];
    assert_eq!(found, [false, true, true, false]);
    let listed = store.invitations_to("eve@example.org").await;
    assert_eq!(listed.expect("a list").len(), 2);
    assert_eq!(store.invitations().await.expect("a list").len(), 2);
    let over = store.join_team(&[1; 32], &bob, &entry("bob")).await;
    assert!(matches!(over, Err(StoreError::LinkOver)));
    let open = store.team_invitations(&team.id).await.expect("a list");
    let (id, entry) = (&open[0].id, entry("ada"));
    let foreign = store.withdraw_invitation(id, Some(&other.id), &entry).await;
    assert!(!foreign.expect("an answer"), "it is not to this team");
    let done = store.withdraw_invitation(id, Some(&team.id), &entry).await;
    assert!(done.expect("an answer"));
}
