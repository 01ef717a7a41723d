//! Which connections make room for others.

use futures_util::FutureExt as _;

use super::*;

fn peer(address: &str) -> Option<SocketAddr> {
    Some(SocketAddr::new(address.parse().expect("an address"), 1))
}

const MAX: MaxConnections = MaxConnections {
    total: 3,
    per_address: Some(2),
};

#[test]
fn a_connection_counts_until_it_ends() {
    let limits = Arc::new(ConnectionLimits::default());
    let first = limits.admit(peer("10.0.0.1"), MAX).expect("the first");
    let second = limits.admit(peer("::ffff:10.0.0.1"), MAX);
    assert!(second.is_some());
    assert!(limits.admit(peer("10.0.0.1"), MAX).is_none());
    let third = limits.admit(peer("2001:db8::1"), MAX);
    assert!(third.is_some() && limits.admit(peer("10.0.0.2"), MAX).is_none());
    drop(first);
    assert!(limits.admit(peer("10.0.0.1"), MAX).is_some());
    drop((second, third));
    assert_eq!(limits.open().total, 0);
    assert!(limits.open().by_address.is_empty());
}

fn is_evicted(permit: &ConnectionPermit) -> bool {
    permit.connection().evicted().now_or_never().is_some()
}

/// Admits a connection and serves it.
fn served(limits: &Arc<ConnectionLimits>, address: &str) -> Option<ConnectionPermit> {
    let permit = limits.admit(peer(address), MAX)?;
    permit.connection().set_served();
    Some(permit)
}

#[test]
fn connections_without_a_right_key_make_room_the_longest_idle_first() {
    let limits = Arc::new(ConnectionLimits::default());
    let admit = |address| served(&limits, address).expect("room");
    let [first, second, third] = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(admit);
    // The first one asks again, and waits for a shorter time than the second.
    drop(first.connection().serve_request());
    let fourth = admit("10.0.0.4");
    assert!(is_evicted(&second) && !is_evicted(&first) && !is_evicted(&third));
    // Those that are served make room after those that wait, however long they are.
    let busy = [
        first.connection().serve_request(),
        fourth.connection().serve_request(),
    ];
    let fifth = admit("10.0.0.5");
    assert!(is_evicted(&third) && !is_evicted(&first) && !is_evicted(&fourth));
    let also_busy = fifth.connection().serve_request();
    let sixth = admit("10.0.0.6");
    assert!(is_evicted(&first) && !is_evicted(&fourth) && !is_evicted(&fifth));
    drop((busy, also_busy));
    drop((first, second, third, fourth, fifth, sixth));
    let open = limits.open();
    assert_eq!((open.total, open.by_address.len()), (0, 0));
    assert!(open.unknown.is_empty() && open.turns.is_empty());
    assert!(open.turns_by_address.is_empty() && open.known.is_empty());
}

#[test]
fn the_owner_with_most_connections_makes_room_with_an_idle_one() {
    let limits = Arc::new(ConnectionLimits::default());
    let [much, little] = [(); 2].map(|()| Arc::new(OwnerShare::default()));
    let admit = |address, owner| {
        let permit = served(&limits, address).expect("room");
        let request = permit.connection().serve_request();
        permit.connection().set_owner(owner);
        drop(request);
        permit
    };
    let alone = admit("10.0.0.1", &little);
    let [first, second] = ["10.0.0.2", "10.0.0.3"].map(|address| admit(address, &much));
    // The first of the two is served, so that the second makes room, though the other owner's waits for longer.
    let request = first.connection().serve_request();
    let unknown = served(&limits, "10.0.0.4").expect("room");
    assert!(is_evicted(&second) && !is_evicted(&first) && !is_evicted(&alone));
    // One without a key goes before all of them.
    let next = admit("10.0.0.5", &little);
    assert!(is_evicted(&unknown) && !is_evicted(&first) && !is_evicted(&alone));
    // While all are served and at an upstream, none does.
    let busy = [&first, &alone, &next].map(|permit| permit.connection());
    let requests = [busy[1].serve_request(), busy[2].serve_request()];
    let forwarded = busy.map(ClientConnection::forward_request);
    assert!(served(&limits, "10.0.0.6").is_none());
    drop((request, requests, forwarded));
    drop((alone, first, second, unknown, next));
    let open = limits.open();
    assert_eq!((open.total, open.known.len()), (0, 0));
}

#[test]
fn the_owner_with_most_connections_makes_room_with_the_longest_busy_one_at_no_upstream() {
    let limits = Arc::new(ConnectionLimits::default());
    let [much, little] = [(); 2].map(|()| Arc::new(OwnerShare::default()));
    let admit = |address, owner| {
        let permit = served(&limits, address).expect("room");
        permit.connection().set_owner(owner);
        let request = permit.connection().serve_request();
        (permit, request)
    };
    let (alone, own_request) = admit("10.0.0.1", &little);
    let (first, first_request) = admit("10.0.0.2", &much);
    let (second, second_request) = admit("10.0.0.3", &much);
    let forwarded = first.connection().forward_request();
    let newcomer = served(&limits, "10.0.0.4").expect("room");
    assert!(is_evicted(&second) && !is_evicted(&first) && !is_evicted(&alone));
    assert!(second.connection().may_end());
    newcomer.connection().set_owner(&little);
    let newest_request = newcomer.connection().serve_request();
    // An owner that has one alone keeps it; of the two, that which is busy for longer makes room.
    drop(forwarded);
    let last = served(&limits, "10.0.0.5").expect("room");
    assert!(is_evicted(&alone) && !is_evicted(&newcomer) && !is_evicted(&first));
    // What has gone to an upstream meanwhile is answered first.
    let late = alone.connection().forward_request();
    assert!(!alone.connection().may_end());
    drop(late);
    assert!(alone.connection().may_end());
    last.connection()
        .set_owner(&Arc::new(OwnerShare::default()));
    let last_request = last.connection().serve_request();
    assert!(served(&limits, "10.0.0.6").is_none());
    drop((own_request, first_request, second_request));
    drop((newest_request, last_request));
}

#[test]
fn an_address_makes_room_for_itself() {
    let limits = Arc::new(ConnectionLimits::default());
    let admit = |address| served(&limits, address).expect("room");
    let [other, first, second] = ["10.0.0.9", "10.0.0.1", "10.0.0.1"].map(admit);
    let third = admit("10.0.0.1");
    assert!(is_evicted(&first) && !is_evicted(&other) && !is_evicted(&second));
    assert_eq!(limits.open().total, 3);
    let owner = Arc::new(OwnerShare::default());
    let requests = [&second, &third].map(|permit| {
        permit.connection().set_owner(&owner);
        let connection = permit.connection();
        (connection.serve_request(), connection.forward_request())
    });
    assert!(served(&limits, "10.0.0.1").is_none());
    drop(requests);
    assert!(served(&limits, "10.0.0.1").is_some());
}
