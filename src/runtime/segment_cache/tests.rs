//! What was put is there, and the bounds hold.

use super::*;

fn cache(size: usize) -> SegmentCache {
    SegmentCache::new(size, Duration::from_secs(60))
}

#[test]
fn what_was_put_is_there_under_its_name_until_it_is_removed() {
    let cache = cache(100_000);
    cache.put("key", "a", &[b"one", b"", b" two"]);
    cache.put("key", "b", &[]);
    assert_eq!(cache.get("key", "a").as_deref(), Some(&b"one two"[..]));
    assert_eq!(cache.get("key", "b").as_deref(), Some(&b""[..]));
    assert!(cache.touch("key", "a") && cache.touch("key", "b"));
    assert!(!cache.touch("key", "c") && !cache.touch("other", "a"));
    cache.put("key", "a", &[b"three"]);
    assert_eq!(cache.get("key", "a").as_deref(), Some(&b"three"[..]));
    cache.remove("key", "a");
    assert_eq!((cache.get("key", "a"), cache.get("key", "c")), (None, None));
}

#[test]
fn a_long_value_is_read_without_a_copy() {
    let cache = cache(1 << 20);
    let value = vec![b'v'; 100_000];
    cache.put("key", "a", &[&value]);
    let first = cache.get("key", "a").expect("a value");
    // It becomes old, and moves to a new segment.
    for number in 0..5 {
        cache.put("key", &number.to_string(), &[&value]);
        let again = cache.get("key", "a").expect("a value");
        assert_eq!((again.as_ptr(), again.len()), (first.as_ptr(), value.len()));
    }
    assert!(cache.allocated() <= 1 << 20);
}

#[test]
fn the_newest_are_there_and_the_bound_holds() {
    for length in [0, 10, 1000, 1600, 40_000] {
        let cache = cache(100_000);
        let value = vec![b'v'; length];
        for number in 0..3000 {
            cache.put("key", &number.to_string(), &[&value]);
            assert!(cache.allocated() <= 100_000);
        }
        let fitting = 100_000 / (length + 4 + OVERHEAD + 100_000 / SEGMENT_COUNT);
        for number in 3000 - fitting..3000 {
            assert!(
                cache.get("key", &number.to_string()).is_some(),
                "{length} {number}"
            );
        }
        assert_eq!(cache.get("key", "0"), None);
    }
    let cache = cache(1000);
    cache.put("key", "large", &[&[b'v'; 1000]]);
    assert_eq!((cache.get("key", "large"), cache.allocated()), (None, 0));
}

#[test]
fn what_is_used_stays() {
    let cache = cache(100_000);
    cache.put("key", "used", &[b"value"]);
    for number in 0..3000 {
        cache.put("key", &number.to_string(), &[&[b'v'; 1000]]);
        assert!(cache.get("key", "used").is_some(), "{number}");
    }
}

#[test]
fn what_is_not_used_for_a_while_is_gone() {
    let cache = SegmentCache::new(100_000, Duration::ZERO);
    cache.put("key", "a", &[b"one"]);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(cache.get("key", "a"), None);
    cache.put("key", "b", &[b"two"]);
    let shares = cache.shares();
    let entries = shares.get("key").map(|segments| segments.entries.len());
    assert_eq!(entries, Some(1));
}

#[test]
fn a_key_evicts_its_own_entries_and_not_those_of_another() {
    let cache = cache(100_000);
    let large = vec![b'v'; 20_000];
    for number in 0..10 {
        cache.put("quiet", &number.to_string(), &[b"value"]);
    }
    cache.put("large", "a", &[&large]);
    for number in 0..3000 {
        let length = if number % 2 == 0 { 1000 } else { 20_000 };
        cache.put("loud", &number.to_string(), &[&large[..length]]);
        assert!(cache.allocated() <= 100_000);
    }
    for number in 0..10 {
        let name = number.to_string();
        assert!(cache.get("quiet", &name).is_some(), "{name}");
    }
    assert!(cache.get("large", "a").is_some());
    assert!(cache.get("loud", "2999").is_some());
    assert_eq!(cache.get("quiet", "2999"), None);
}

#[test]
fn a_key_with_little_holds_little() {
    let cache = cache(64 << 20);
    for number in 0..1000 {
        cache.put(&format!("key-{number}"), "name", &[&[b'v'; 1000]]);
    }
    assert!(cache.allocated() <= 1000 * FIRST_SEGMENT_SIZE);
    for number in 0..1000 {
        assert!(cache.get(&format!("key-{number}"), "name").is_some());
    }
}
