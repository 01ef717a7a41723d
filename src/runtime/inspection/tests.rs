//! Inspections begin, end and make room.

use super::*;

fn key(id: &str) -> InspectedKey {
    InspectedKey {
        id: id.to_owned(),
        name: format!("ada/{id}"),
        account: "ada".to_owned(),
        by: "ada".to_owned(),
    }
}

#[test]
fn an_inspection_ends_by_its_count_and_by_hand_and_takes_the_place_of_the_last() {
    let (inspector, switch) = (Inspector::default(), Arc::<InspectionSwitch>::default());
    assert!(switch.begin("req_0").is_none() && !switch.is_on());
    let first = inspector.start(key("one"), switch.clone());
    for number in 1..=INSPECTED_REQUESTS {
        assert_eq!(first.left(), INSPECTED_REQUESTS + 1 - number);
        let capture = switch.begin("req_1").expect("it is inspected");
        assert_eq!(capture.number, number);
    }
    assert!(switch.begin("req_2").is_none() && !switch.is_on());
    assert!(!first.is_running() && inspector.end("one").is_none());

    let second = inspector.start(key("one"), switch.clone());
    assert!(inspector.find(&first.id).is_none(), "it is forgotten");
    assert!(inspector.end("other").is_none());
    assert!(inspector.end("one").is_some() && !switch.is_on());
    assert!(switch.begin("req_3").is_none());
    assert_eq!((second.left(), second.captures().len()), (0, 0));
    let found = inspector.of_key("one").expect("it can still be seen");
    assert!(Arc::ptr_eq(&found, &second));

    let third = inspector.start(key("one"), switch.clone());
    assert!(switch.begin("req_4").is_some() && third.capture(1).is_some());
    assert!(third.capture(0).is_none() && third.capture(2).is_none());
}

#[test]
fn time_ends_an_inspection_and_then_what_was_captured() {
    let (inspector, switch) = (Inspector::default(), Arc::<InspectionSwitch>::default());
    let inspection = inspector.start(key("one"), switch.clone());
    let capture = switch.begin("req_1").expect("it is inspected");
    let mut share = capture.share();
    assert_eq!(share.take(10), 10);
    drop((capture, inspection));
    let age = |by: Duration| {
        let mut inspections = inspector.inspections.lock().expect("no panic");
        // What is running is held by its switch as well.
        *switch.lock() = None;
        let inspection = Arc::get_mut(&mut inspections[0]).expect("nobody else has it");
        inspection.began = Instant::now().checked_sub(by).expect("it was");
        *switch.lock() = Some(inspections[0].clone());
    };
    age(INSPECTION_TIME);
    assert!(switch.begin("req_2").is_none() && !switch.is_on());
    assert!(inspector.of_key("one").is_some_and(|it| !it.is_running()));
    age(CAPTURES_KEPT);
    inspector.forget_old();
    assert!(inspector.of_key("one").is_none());
}

/// One request that is over, with as much memory as there is for it.
fn capture_much(inspection: &Arc<Inspection>) -> (Arc<Capture>, CaptureShare, usize) {
    let capture = inspection.switch.begin("req_1").expect("it is inspected");
    let mut share = capture.share();
    let taken = share.take(MEMORY_LIMIT);
    capture.update(|request| request.outcome = Some(CaptureOutcome::default()));
    (capture, share, taken)
}

#[test]
fn one_account_has_a_part_of_the_memory_and_a_few_inspections() {
    let inspector = Inspector::default();
    let key = |account: &str, id: &str| InspectedKey {
        account: account.to_owned(),
        ..key(id)
    };
    let start = |account: &str, id: &str| inspector.start(key(account, id), Arc::default());
    let first = start("ada", "0");
    let (_, held, taken) = capture_much(&first);
    assert_eq!(taken, MEMORY_LIMIT / 4);
    let (_, _, taken) = capture_much(&start("ada", "1"));
    assert_eq!(taken, 0, "both are of one account");
    let (_, _, taken) = capture_much(&start("bob", "2"));
    assert_eq!(taken, MEMORY_LIMIT / 4);
    drop(held);
    for number in 3..=KEPT_INSPECTIONS + 1 {
        start("ada", &number.to_string());
    }
    assert!(inspector.of_key("0").is_none() && !first.is_running());
    let of_ada = inspector
        .current()
        .iter()
        .filter(|it| it.key.account == "ada")
        .count();
    assert_eq!(of_ada, KEPT_INSPECTIONS);
    assert!(inspector.of_key("2").is_some());
}

#[test]
fn the_oldest_of_who_has_most_makes_room_for_others() {
    let inspector = Inspector::default();
    let mut held = Vec::new();
    for account in ["a", "b", "c", "d"] {
        let key = InspectedKey {
            account: account.to_owned(),
            ..key(account)
        };
        let inspection = inspector.start_play(key, Arc::default());
        let capture = inspection.switch.begin("req_1").expect("it is inspected");
        let wanted = if account == "c" {
            MEMORY_LIMIT
        } else {
            MEMORY_LIMIT / 5
        };
        let mut share = capture.share();
        share.take(wanted);
        let message = CapturedMessage {
            head: String::new(),
            body: String::new(),
            size: 0,
            is_cut: false,
            share,
        };
        capture.update(|request| {
            request.client_request = Some(Arc::new(message));
            request.outcome = Some(CaptureOutcome::default());
        });
        held.push(inspection.id.clone());
    }
    inspector.start(key("e"), Arc::default());
    let is_kept = held.iter().map(|id| inspector.find(id).is_some());
    assert_eq!(is_kept.collect::<Vec<_>>(), [true, true, false, true]);
}

#[test]
fn a_forgotten_inspection_leaves_no_second_part_to_its_account() {
    let inspector = Inspector::default();
    let start = || inspector.start(key("one"), Arc::default());
    let (_, held, taken) = capture_much(&start());
    assert_eq!(taken, MEMORY_LIMIT / 4);
    let again = start();
    assert_eq!(capture_much(&again).2, 0, "the first one is under way");
    drop(held);
    assert_eq!(capture_much(&again).2, MEMORY_LIMIT / 4);
    inspector.end("one");
    drop(again);
    inspector.inspections.lock().expect("no panic").clear();
    inspector.memory_of("bob");
    let by_account = inspector.by_account.lock().expect("no panic");
    assert!(!by_account.contains_key("ada"), "nothing is left of it");
}

#[test]
fn nobody_is_forgotten_where_that_frees_nothing() {
    let inspector = Inspector::default();
    let start = |account: &str, kept: usize| {
        let key = InspectedKey {
            account: account.to_owned(),
            ..key(account)
        };
        let inspection = inspector.start(key, Arc::default());
        let capture = inspection.switch.begin("req_1").expect("it is inspected");
        let mut share = capture.share();
        share.take(kept);
        let message = CapturedMessage {
            head: String::new(),
            body: String::new(),
            size: 0,
            is_cut: false,
            share,
        };
        capture.update(|request| {
            request.client_request = Some(Arc::new(message));
            request.outcome = Some(CaptureOutcome::default());
        });
        inspector.end(account);
        (inspection.id.clone(), capture)
    };
    let (empty, _) = start("empty", 0);
    // Somebody is looking at what each of these has.
    let seen = ["a", "b", "c", "d"].map(|account| start(account, MEMORY_LIMIT));
    inspector.start(key("one"), Arc::default());
    assert!(inspector.find(&empty).is_some(), "it has nothing");
    let kept = seen.iter().filter(|(id, _)| inspector.find(id).is_some());
    assert_eq!(kept.count(), 3, "one was tried");
}

#[test]
fn a_timeline_takes_memory() {
    let inspector = Inspector::default();
    let inspection = inspector.start(key("one"), Arc::default());
    let capture = inspection.switch.begin("req_1").expect("it is inspected");
    let event = || TimelineEvent {
        microseconds: 0,
        side: EventSide::Client,
        kind: EventKind::Arrived,
        detail: "x".repeat(100),
        bytes: 0,
    };
    capture.update(|request| request.add_event(event()));
    let used = inspection.memory.used();
    assert!(used > 100 && capture.request().timeline.len() == 1);
    let mut share = capture.share();
    share.take(MEMORY_LIMIT);
    capture.update(|request| request.add_event(event()));
    let request = capture.request();
    assert_eq!((request.timeline.len(), request.omitted_events), (1, 1));
    drop((request, capture, share));
    let memory = inspection.memory.clone();
    // What is running is held by its switch as well.
    inspection.end();
    drop((inspection, inspector));
    assert_eq!(memory.used(), 0);
}
