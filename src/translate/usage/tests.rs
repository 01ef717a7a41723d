//! Responses whose usage was reported in full, in part and not at all.

use super::*;
use crate::formats::ReportedUsage;
use crate::model::CompactionUsage;

const REPORTED: Usage = Usage {
    input: 100,
    cached: 40,
    cache_written: 0,
    output: 7,
    thinking: 3,
    audio_input: 0,
    audio_output: 0,
    image_output: 0,
    image_input: 0,
    compaction: CompactionUsage {
        uncached: 0,
        cached: 0,
        cache_written: 0,
        output: 0,
    },
};

fn observer(usage: Option<Usage>, ended: bool, text: usize, reasoning: usize) -> ResponseObserver {
    let mut observer = ResponseObserver::default();
    (observer.usage, observer.ended) = (usage, ended);
    observer.uncounted.add_plain_text(&"a".repeat(text));
    observer
        .uncounted
        .add_plain_reasoning(&"a".repeat(reasoning));
    observer
}

fn counted(observer: &ResponseObserver) -> (u64, u64, u64, bool) {
    let MeasuredUsage { usage, estimated } = measure(observer, || 55);
    (usage.input, usage.output, usage.thinking, estimated)
}

#[test]
fn the_reported_usage_of_a_complete_response_is_exact() {
    let ended = observer(Some(REPORTED), true, 0, 0);
    let exact = MeasuredUsage {
        usage: REPORTED,
        estimated: false,
    };
    assert_eq!(measure(&ended, || panic!("nobody asks")), exact);
}

#[test]
fn content_after_the_last_report_is_added() {
    assert_eq!(
        counted(&observer(Some(REPORTED), false, 0, 0)),
        (100, 7, 3, false)
    );
    assert_eq!(
        counted(&observer(Some(REPORTED), false, 41, 8)),
        (100, 7 + 11 + 2, 3 + 2, true)
    );
}

#[test]
fn usage_without_a_report_is_estimated() {
    for ended in [false, true] {
        assert_eq!(counted(&observer(None, ended, 8, 5)), (55, 4, 2, true));
        assert_eq!(counted(&observer(None, ended, 0, 0)), (55, 0, 0, true));
    }
}

#[test]
fn a_report_of_zeros_is_ignored() {
    for ended in [false, true] {
        let zeros = observer(Some(Usage::default()), ended, 8, 5);
        assert_eq!(counted(&zeros), (55, 4, 2, true));
    }
    let mut observer = observer(None, false, 8, 0);
    observer.record_usage(ReportedUsage::of_whole(Usage::default()));
    assert_eq!(
        observer.uncounted.text_tokens(),
        2,
        "they stand for nothing"
    );
    observer.record_usage(ReportedUsage::of_whole(REPORTED));
    assert_eq!(observer.uncounted, ContentTokens::default());
}
