//! Replies that were counted in full, in part and not at all, and bodies of text and of data.

use super::*;

const TOLD: Usage = Usage {
    input: 100,
    cached: 40,
    cache_written: 0,
    output: 7,
    thinking: 3,
    audio_input: 0,
    audio_output: 0,
    image_output: 0,
    image_input: 0,
};

fn observer(usage: Option<Usage>, ended: bool, text: u64, reasoning: u64) -> ResponseObserver {
    let mut observer = ResponseObserver::default();
    (observer.usage, observer.ended) = (usage, ended);
    observer.uncounted = ContentBytes { text, reasoning };
    observer
}

fn counted(observer: &ResponseObserver) -> (u64, u64, u64, bool) {
    let MeasuredUsage { usage, estimated } = of(observer, || 55);
    (usage.input, usage.output, usage.thinking, estimated)
}

#[test]
fn counts_of_a_reply_that_has_ended_are_taken_as_they_are() {
    let ended = observer(Some(TOLD), true, 400, 400);
    let exact = MeasuredUsage {
        usage: TOLD,
        estimated: false,
    };
    assert_eq!(of(&ended, || panic!("nobody asks")), exact);
}

#[test]
fn what_came_after_the_last_counts_is_added_to_them() {
    assert_eq!(
        counted(&observer(Some(TOLD), false, 0, 0)),
        (100, 7, 3, false)
    );
    assert_eq!(
        counted(&observer(Some(TOLD), false, 41, 8)),
        (100, 7 + 11 + 2, 3 + 2, true)
    );
}

#[test]
fn without_counts_all_is_estimated() {
    for ended in [false, true] {
        assert_eq!(counted(&observer(None, ended, 8, 5)), (55, 4, 2, true));
        assert_eq!(counted(&observer(None, ended, 0, 0)), (55, 0, 0, true));
    }
}

#[test]
fn zeros_are_no_counts() {
    for ended in [false, true] {
        let zeros = observer(Some(Usage::default()), ended, 8, 5);
        assert_eq!(counted(&zeros), (55, 4, 2, true));
    }
    let mut observer = observer(None, false, 8, 0);
    observer.record_usage(Usage::default());
    assert_eq!(observer.uncounted.text, 8, "they stand for nothing");
    observer.record_usage(TOLD);
    assert_eq!(observer.uncounted, ContentBytes::default());
}

#[test]
fn text_is_text_whatever_its_length() {
    for words in ["The quick brown fox. ", "今日は世界。", "{\"a\":1}"] {
        for times in [1, 1000, 100_000] {
            let body = words.repeat(times);
            let length = body.len() as u64;
            let bulk = BodyEstimate::of(body.as_bytes());
            assert_eq!((bulk.text, bulk.data), (length, 0), "{words}");
            assert_eq!(bulk.tokens(), length.div_ceil(4));
            assert_eq!(bulk.max_tokens(), length.div_ceil(3));
        }
    }
    assert_eq!(BodyEstimate::of(b"").max_tokens(), 0);
}

#[test]
fn pictures_do_not_count_as_words() {
    let prompt = "What is on it? ".repeat(2000);
    for size in [1usize << 20, 20 << 20] {
        let body = format!("{prompt}\"{}\"", "iVBORw0K+/9a".repeat(size / 12));
        let bulk = BodyEstimate::of(body.as_bytes());
        assert_eq!(bulk.text + bulk.data, body.len() as u64);
        let stretch = (body.len() / LOOKS).max(STRETCH) as u64;
        let text = prompt.len() as u64;
        let near = text - stretch..=text + 3 * stretch;
        assert!(near.contains(&bulk.text), "{bulk:?}");
    }
}
