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

fn is_evicted(permit: &ConnectionPermit) -> bool {
    permit.connection().evicted().now_or_never().is_some()
}

/// Admits a connection that waits for its first request.
fn served(limits: &Arc<ConnectionLimits>, address: &str) -> Option<ConnectionPermit> {
    limits.admit(peer(address), MAX)
}

/// Admits a connection that an upstream answers, which makes room for no other.
fn forwarded(
    limits: &Arc<ConnectionLimits>,
    address: &str,
) -> Option<(ForwardedRequest, ActiveRequest, ConnectionPermit)> {
    let permit = served(limits, address)?;
    let connection = permit.connection();
    connection.set_owner(&Arc::new(OwnerShare::default()));
    let request = connection.serve_request();
    Some((connection.forward_request(), request, permit))
}

#[test]
fn a_connection_counts_until_it_ends() {
    let limits = Arc::new(ConnectionLimits::default());
    let first = forwarded(&limits, "10.0.0.1").expect("the first");
    let second = forwarded(&limits, "::ffff:10.0.0.1");
    assert!(second.is_some());
    assert!(served(&limits, "10.0.0.1").is_none());
    let third = forwarded(&limits, "2001:db8::1");
    assert!(third.is_some() && served(&limits, "10.0.0.2").is_none());
    drop(first);
    assert!(served(&limits, "10.0.0.1").is_some());
    drop((second, third));
    assert_eq!(limits.open().counts(), [0; 7]);
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
    assert_eq!(limits.open().counts(), [0; 7]);
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
    let forwarded = busy.map(|connection| connection.forward_request());
    assert!(served(&limits, "10.0.0.6").is_none());
    drop((request, requests, forwarded));
    drop((alone, first, second, unknown, next));
    assert_eq!(limits.open().counts(), [0; 7]);
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
    assert_eq!(limits.open().counts()[0], 3);
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

/// Lets a connection begin its handshake.
fn in_handshake(limits: &Arc<ConnectionLimits>, address: &str) -> ConnectionPermit {
    limits.admit_handshake(peer(address), MAX)
}

#[test]
fn a_connection_in_its_handshake_makes_room_as_one_that_waits_does() {
    let limits = Arc::new(ConnectionLimits::default());
    let first = in_handshake(&limits, "10.0.0.1");
    let waiting = served(&limits, "10.0.0.2").expect("room");
    let busy = served(&limits, "10.0.0.3").expect("room");
    let request = busy.connection().serve_request();
    let fourth = in_handshake(&limits, "10.0.0.4");
    assert!(is_evicted(&first) && !is_evicted(&waiting) && !is_evicted(&busy));
    assert!(!first.connection().finish_handshake(MAX));
    let fifth = in_handshake(&limits, "10.0.0.5");
    assert!(is_evicted(&waiting) && !is_evicted(&fourth) && !is_evicted(&busy));
    let sixth = in_handshake(&limits, "10.0.0.6");
    assert!(is_evicted(&fourth) && !is_evicted(&busy));
    let also_from_there = ["10.0.0.6", "10.0.0.6"].map(|address| in_handshake(&limits, address));
    assert!(is_evicted(&fifth) && is_evicted(&sixth) && !is_evicted(&busy));
    assert!(also_from_there[0].connection().finish_handshake(MAX));
    drop((first, waiting, request, busy, fourth, fifth));
    drop((sixth, also_from_there));
    assert_eq!(limits.open().counts(), [0; 7]);
}

#[test]
fn no_connection_with_a_right_key_makes_room_for_a_handshake_that_has_not_finished() {
    let limits = Arc::new(ConnectionLimits::default());
    let owner = Arc::new(OwnerShare::default());
    let known = ["10.0.0.1", "10.0.0.2", "10.0.0.3"].map(|address| {
        let permit = served(&limits, address).expect("room");
        permit.connection().set_owner(&owner);
        drop(permit.connection().serve_request());
        permit
    });
    let handshakes: Vec<_> = (0..20).map(|_| in_handshake(&limits, "10.0.0.4")).collect();
    assert!(!known.iter().any(is_evicted));
    // They are as many as may wait, of which the oldest ends for the next.
    let ended: Vec<bool> = handshakes.iter().map(is_evicted).collect();
    assert_eq!(ended, [[true; 4].as_slice(), &[false; 16]].concat());
    assert_eq!(limits.open().counts()[0], 3);
    assert!(!handshakes[0].connection().finish_handshake(MAX));
    assert!(handshakes[4].connection().finish_handshake(MAX));
    assert!(is_evicted(&known[0]) && !is_evicted(&known[1]) && !is_evicted(&known[2]));
    // The next one takes the place of the one before, which has shown no key.
    assert!(handshakes[5].connection().finish_handshake(MAX));
    assert!(is_evicted(&handshakes[4]) && !is_evicted(&known[1]));
    drop((known, handshakes));
    assert_eq!(limits.open().counts(), [0; 7]);
}
