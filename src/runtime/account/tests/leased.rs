//! Several processes on one cap: an account each, and a store that is a sum and a list.

use std::collections::HashMap;

use tokio::sync::oneshot::Receiver;

use super::super::ReservationResult;
use super::*;
use crate::model::{LeaseGrant, LeaseRequest};

/// What the store keeps of one key in one period.
#[derive(Default)]
struct FakeStore {
    spent: Money,
    leases: HashMap<usize, Money>,
}

impl FakeStore {
    fn meet(&mut self, process: usize, need: LeaseRequest) -> LeaseGrant {
        let others = self.leases.iter().filter(|(other, _)| **other != process);
        let grant = need.grant(self.spent, others.map(|(_, amount)| *amount).sum());
        self.leases.insert(process, grant.amount);
        grant
    }

    fn open(&self) -> Money {
        self.leases.values().copied().sum()
    }
}

struct Process {
    number: usize,
    account: Arc<Account>,
    cap: Cap,
    now: Timestamp,
}

impl Process {
    fn new(number: usize, cap: Cap) -> Process {
        let (account, now) = (Arc::new(Account::default()), at("11-15T12:00"));
        account.load_spent(Spending::default(), now);
        Process {
            number,
            account,
            cap,
            now,
        }
    }

    /// One question to the store, if there is one.
    fn ask(&self, store: &mut FakeStore, action: LeaseAction) {
        let (account, cap, now) = (&self.account, self.cap, self.now);
        if let Some(need) = account.lease_request(cap, action, now) {
            account.apply_grant(cap, store.meet(self.number, need), need, now);
        }
    }

    fn begin(&self, most: &str) -> Result<Reservation, Receiver<ReservationResult>> {
        let reserved = self.account.reserve(money(most), self.cap, self.now);
        reserved.map_err(|refused| {
            assert_eq!(refused, ReserveError::NotLeased);
            self.account.wait_for_lease(money(most), self.cap)
        })
    }

    fn request(&self, store: &mut FakeStore, most: &str) -> Result<Reservation, CapExceeded> {
        self.begin(most).or_else(|mut result| {
            self.ask(store, LeaseAction::More);
            result.try_recv().expect("an answer")
        })
    }

    fn record(&self, store: &mut FakeStore, cost: &str) {
        let cost = money(cost);
        store.spent += cost;
        let lease = store.leases.entry(self.number).or_default();
        *lease = lease.saturating_sub(cost);
        self.account.mark_recorded(cost, self.now, self.now);
    }
}

fn processes(cap: Cap) -> [Process; 2] {
    [Process::new(0, cap), Process::new(1, cap)]
}

#[test]
fn one_process_uses_its_cap_to_the_last_digit() {
    let [only, _] = processes(cap("1", Reset::Never));
    let mut store = FakeStore::default();
    for turn in 0..10 {
        let reservation = only.request(&mut store, "0.1").expect("there is enough");
        reservation.settle(money("0.1"), only.now);
        // The store may have it at once, later, or together with others.
        if turn % 3 == 2 {
            only.record(&mut store, "0.3");
        }
        assert!(store.spent + store.open() <= money("1"), "{turn}");
    }
    let refused = only
        .account
        .reserve(money("0.001"), only.cap, only.now)
        .err();
    assert_eq!(refused, Some(short("0", "0")));
    only.record(&mut store, "0.1");
    assert_eq!((store.spent, store.open()), (money("1"), Money::ZERO));
}

#[test]
fn two_never_take_the_same_money_and_what_one_does_not_use_comes_back() {
    let [one, other] = processes(cap("1", Reset::Never));
    let mut store = FakeStore::default();
    let reserved = one.request(&mut store, "0.4").expect("enough");
    assert_eq!(
        store.open(),
        money("1"),
        "what was waited for, and twice as much"
    );
    let refused = other
        .request(&mut store, "0.4")
        .err()
        .expect("nothing is left");
    assert_eq!(refused.leased_elsewhere, Some(money("1")));
    reserved.settle(money("0.4"), one.now);
    one.record(&mut store, "0.4");
    // KeyLimiter since it last looked; at the second look it is not.
    one.ask(&mut store, LeaseAction::Trim);
    one.ask(&mut store, LeaseAction::Trim);
    assert_eq!((store.spent, store.open()), (money("0.4"), Money::ZERO));
    let all = other.request(&mut store, "0.6").expect("all that is left");
    // What memory knew of the cap is known of all processes now.
    all.settle(money("0.6"), other.now);
    let last = one
        .request(&mut store, "0.1")
        .err()
        .expect("it is all spent");
    assert_eq!(
        (last.left, last.leased_elsewhere),
        (money("0.6"), Some(money("0.6")))
    );
    other.record(&mut store, "0.6");
    let last = one
        .request(&mut store, "0.1")
        .err()
        .expect("it is all spent");
    assert_eq!(
        (last.left, last.leased_elsewhere),
        (Money::ZERO, Some(Money::ZERO))
    );
}

#[test]
fn too_little_in_two_hands_is_not_kept_from_either() {
    let [one, other] = processes(cap("1", Reset::Never));
    let mut store = FakeStore {
        spent: money("0.9"),
        ..FakeStore::default()
    };
    one.request(&mut store, "0.02").map(drop).expect("enough");
    other.request(&mut store, "0.02").map(drop).expect("enough");
    assert_eq!(store.open(), money("0.1"));
    assert!(one.request(&mut store, "0.08").is_err());
    assert_eq!(store.leases[&0], Money::ZERO, "of no use to it");
    assert!(other.request(&mut store, "0.1").is_ok());
}

#[test]
fn who_waits_is_served_in_turn_and_who_leaves_gives_it_back() {
    let [only, _] = processes(cap("1", Reset::Never));
    let mut store = FakeStore::default();
    let mut waiting: Vec<_> = (0..12).map(|_| only.begin("0.1").err()).collect();
    // Nothing is asked for those who have gone by now.
    waiting[11] = None;
    let (account, cap, now) = (&only.account, only.cap, only.now);
    let need = account
        .lease_request(cap, LeaseAction::More, now)
        .expect("a question");
    assert_eq!(need.desired, money("1.3"));
    waiting[0] = None;
    // One that comes now is not refused by an answer that was not for it.
    let mut late = only
        .begin("0.1")
        .err()
        .expect("nothing is free while it is asked");
    account.apply_grant(cap, store.meet(0, need), need, now);
    let mut served = 0;
    let mut holds = Vec::new();
    for result in waiting.iter_mut().flatten() {
        match result.try_recv().expect("an answer") {
            Ok(reservation) => holds.push(reservation),
            Err(short) => {
                assert_eq!(short.reserved, money("1"));
                served = served.max(holds.len());
            }
        }
    }
    // The first had its turn, but nobody was there.
    assert_eq!((served, holds.len()), (9, 9));
    assert!(late.try_recv().is_err(), "not yet");
    drop(holds);
    only.ask(&mut store, LeaseAction::More);
    assert!(late.try_recv().expect("an answer").is_ok());
}

#[test]
fn without_the_store_one_slice_goes_on_and_is_owed() {
    let [one, other] = processes(cap("1", Reset::Never));
    let mut store = FakeStore::default();
    let mut result = one.begin("0.04").err().expect("nothing leased yet");
    assert!(
        one.account
            .lease_request(one.cap, LeaseAction::More, one.now)
            .is_some()
    );
    one.account.continue_without_store(one.cap, true, one.now);
    let reservation = result.try_recv().expect("an answer").expect("a slice");
    reservation.settle(money("0.04"), one.now);
    let again = one.begin("0.04").ok().expect("of the same");
    again.settle(money("0.04"), one.now);
    let mut result = one.begin("0.04").err().expect("no more");
    assert!(
        one.account
            .lease_request(one.cap, LeaseAction::More, one.now)
            .is_some()
    );
    one.account.continue_without_store(one.cap, true, one.now);
    let refused = result
        .try_recv()
        .expect("an answer")
        .err()
        .expect("once only");
    assert_eq!(refused.leased_elsewhere, None);
    // Meanwhile the others have taken all there was; when the store is back, nothing is forgotten.
    other.request(&mut store, "1").map(drop).expect("all of it");
    one.ask(&mut store, LeaseAction::More);
    assert_eq!(store.leases[&0], money("0.08"));
    assert!(one.request(&mut store, "0.01").is_err());
}

#[test]
fn a_new_day_has_leases_of_its_own() {
    let [mut one, _] = processes(cap("1", Reset::Daily));
    let mut store = FakeStore::default();
    let reservation = one.request(&mut store, "1").expect("all of today");
    reservation.settle(money("0.9"), one.now);
    let mut tomorrow = FakeStore::default();
    one.now = at("11-16T00:00");
    assert!(
        one.begin("0.1").is_err(),
        "what was leased was of yesterday"
    );
    one.ask(&mut tomorrow, LeaseAction::More);
    let reservation = one.request(&mut tomorrow, "0.5").expect("a new day");
    // The receipts of yesterday are carried today.
    one.account
        .mark_recorded(money("0.9"), at("11-15T12:00"), one.now);
    reservation.settle(money("0.5"), one.now);
    one.ask(&mut tomorrow, LeaseAction::Release);
    assert_eq!(
        tomorrow.open(),
        money("0.5"),
        "spent and not yet written down"
    );
    one.record(&mut tomorrow, "0.5");
    assert_eq!(
        (tomorrow.spent, tomorrow.open()),
        (money("0.5"), Money::ZERO)
    );
}

#[test]
fn without_credit_the_lease_is_all_while_the_store_is_away() {
    let [one, _] = processes(cap("1", Reset::Never));
    let mut store = FakeStore::default();
    let first = one.request(&mut store, "0.05").expect("a lease");
    let mut waiting = one.begin("0.5").err().expect("it is not leased");
    let asked = one
        .account
        .lease_request(one.cap, LeaseAction::More, one.now);
    assert!(asked.is_some());
    one.account.continue_without_store(one.cap, false, one.now);
    let answer = waiting.try_recv().expect("an answer");
    let exceeded = answer.err().expect("nothing is taken without the store");
    assert_eq!(
        (exceeded.left, exceeded.leased_elsewhere),
        (money("1"), None)
    );
    // What was leased goes on.
    let second = one.request(&mut store, "0.05").expect("within the lease");
    first.settle(money("0.05"), one.now);
    drop(second);
    assert_eq!(one.account.spent(Reset::Never, one.now), money("0.05"));
}
