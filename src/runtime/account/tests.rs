//! Money reserved, spent and granted back, by many at once and over the ends of periods.

mod leased;

use super::*;

fn money(text: &str) -> Money {
    Money::parse(text).expect("an amount")
}

fn short(left: &str, reserved: &str) -> ReserveError {
    ReserveError::CapExceeded(CapExceeded {
        left: money(left),
        reserved: money(reserved),
        leased_elsewhere: Some(Money::ZERO),
    })
}

fn at(text: &str) -> Timestamp {
    format!("2026-{text}:00Z").parse().expect("a time")
}

fn cap(amount: &str, reset: Reset) -> Cap {
    Cap {
        amount: money(amount),
        reset,
    }
}

#[test]
fn what_is_held_is_given_back_and_what_is_spent_is_not() {
    let account = Arc::new(Account::default());
    let (cap, now) = (cap("1", Reset::Never), at("11-15T12:00"));
    let first = account.reserve(money("0.6"), cap, now).expect("money");
    let second = account.reserve(money("0.5"), cap, now);
    assert_eq!(second.err(), Some(short("1", "0.6")));
    drop(first);
    let again = account.reserve(money("1"), cap, now).expect("all of it");
    again.settle(money("0.7"), now);
    assert_eq!(account.spent(cap.reset, now), money("0.7"));
    let third = account.reserve(money("0.31"), cap, now);
    assert_eq!(third.err(), Some(short("0.3", "0")));
    let rest = account.reserve(money("0.3"), cap, now).expect("the rest");
    rest.settle(money("0.3"), now);
    // At the cap only what costs nothing goes on.
    assert!(account.reserve(money("0.000000001"), cap, now).is_err());
    assert!(account.reserve(Money::ZERO, cap, now).is_ok());
}

#[test]
fn a_request_that_costs_more_than_was_held_leaves_nothing() {
    let account = Arc::new(Account::default());
    let (cap, now) = (cap("1", Reset::Never), at("11-15T12:00"));
    let reservation = account.reserve(money("0.5"), cap, now).expect("money");
    reservation.settle(money("3"), now);
    let refused = account.reserve(money("0.1"), cap, now).err();
    assert_eq!(refused, Some(short("0", "0")));
}

#[test]
fn many_at_once_never_take_the_same_money() {
    let account = Arc::new(Account::default());
    let (cap, now) = (cap("1", Reset::Never), at("11-15T12:00"));
    let taken: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..8)
            .map(|_| {
                let account = &account;
                scope.spawn(move || {
                    let mut taken = 0;
                    for turn in 0..500 {
                        match account.reserve(money("0.1"), cap, now) {
                            // Half of them turn out to cost nothing.
                            Ok(reservation) if turn % 2 == 0 => drop(reservation),
                            Ok(reservation) => {
                                reservation.settle(money("0.1"), now);
                                taken += 1;
                            }
                            Err(_) => {}
                        }
                    }
                    taken
                })
            })
            .collect();
        let taken = workers
            .into_iter()
            .map(|worker| worker.join().expect("no panic"));
        taken.sum()
    });
    assert_eq!(taken, 10);
    assert_eq!(account.spent(cap.reset, now), money("1"));
}

#[test]
fn a_new_period_begins_at_nothing() {
    let account = Arc::new(Account::default());
    let daily = cap("1", Reset::Daily);
    account.spend(money("1"), at("11-15T23:59"));
    assert!(
        account
            .reserve(money("0.1"), daily, at("11-15T23:59"))
            .is_err()
    );
    let reservation = account.reserve(money("0.4"), daily, at("11-16T00:00"));
    // What was begun on one day and ends on the next is spent on the next.
    let reservation = reservation.expect("a new day");
    reservation.settle(money("0.4"), at("11-17T00:01"));
    assert_eq!(account.spent(daily.reset, at("11-17T00:02")), money("0.4"));
    // What ended before midnight and is result after it was spent on the day before.
    account.spend(money("7"), at("11-16T23:59"));
    assert_eq!(account.spent(daily.reset, at("11-17T00:03")), money("0.4"));
    assert_eq!(
        account.spent(Reset::Monthly, at("11-17T00:03")),
        money("8.4")
    );
    assert_eq!(account.spent(daily.reset, at("11-18T00:00")), Money::ZERO);
}

#[test]
fn a_clock_that_goes_back_and_another_period_forget_nothing_of_today() {
    let account = Account::default();
    account.spend(money("1"), at("11-16T00:01"));
    assert_eq!(account.spent(Reset::Daily, at("11-15T23:59")), money("1"));
    assert_eq!(account.spent(Reset::Monthly, at("11-16T00:02")), money("1"));
    assert_eq!(account.spent(Reset::Never, at("11-16T00:02")), money("1"));
    assert_eq!(
        account.spent(Reset::Monthly, at("12-01T00:00")),
        Money::ZERO
    );
}

#[test]
fn what_was_spent_before_is_added_once_and_counts_in_its_periods() {
    let account = Arc::new(Account::default());
    let before = Spending {
        total: money("7"),
        month: money("3"),
        day: money("1"),
    };
    // It may be result late: what was spent meanwhile still counts.
    account.spend(money("0.5"), at("11-15T12:00"));
    assert!(!account.is_loaded());
    for _ in 0..2 {
        account.load_spent(before, at("11-15T12:01"));
        assert!(account.is_loaded());
        for (reset, spent) in [
            (Reset::Never, "7.5"),
            (Reset::Monthly, "3.5"),
            (Reset::Daily, "1.5"),
        ] {
            assert_eq!(account.spent(reset, at("11-15T12:02")), money(spent));
        }
    }
    assert!(
        account
            .reserve(money("0.1"), cap("7.5", Reset::Never), at("11-15T12:03"))
            .is_err()
    );
    assert_eq!(account.spent(Reset::Daily, at("11-16T00:00")), Money::ZERO);
    let month = account.spent(Reset::Monthly, at("11-30T23:59"));
    assert_eq!(month, money("3.5"));
    assert_eq!(
        account.spent(Reset::Monthly, at("12-01T00:00")),
        Money::ZERO
    );
    assert_eq!(account.spent(Reset::Never, at("12-01T00:00")), money("7.5"));
}
