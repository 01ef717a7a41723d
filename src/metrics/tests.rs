//! What a scrape says of what was served.

use std::time::Duration;

use super::*;
use crate::model::{CompactionUsage, Money, Usage};
use crate::translate::MeasuredUsage;

const SERVED: ServedRequest<'static> = ServedRequest {
    format: Some("chat"),
    model: "acme-large",
    upstream: "acme",
    status: 200,
    first_byte: Some(Duration::from_millis(2)),
    added: Some(Duration::from_micros(200)),
    total: Duration::from_secs(3),
    received: 100,
    sent: 2000,
    key: "dev",
    metered: Some(MeasuredUsage {
        usage: USAGE,
        estimated: false,
    }),
    cost: None,
};

const USAGE: Usage = Usage {
    input: 10,
    cached: 4,
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

#[test]
fn costs_add_up_exactly_and_estimates_stand_apart() {
    let metrics = Metrics::new();
    // As floats these would not come to 0.3.
    for _ in 0..3 {
        metrics.record_request(&ServedRequest {
            metered: Some(MeasuredUsage {
                usage: USAGE,
                estimated: true,
            }),
            cost: Money::parse("0.1"),
            ..SERVED
        });
    }
    metrics.record_request(&ServedRequest {
        cost: Some(Money::ZERO),
        key: "other",
        ..SERVED
    });
    assert_lines(
        &metrics,
        &[
            r#"omniglot_cost_total{key="dev",model="acme-large"} 0.3"#,
            r#"omniglot_estimated_tokens_total{model="acme-large",kind="output"} 21"#,
            r#"omniglot_tokens_total{model="acme-large",kind="output"} 7"#,
        ],
    );
    assert!(!metrics.render(Vec::new(), Vec::new()).contains("other"));
}

#[test]
fn a_journal_is_shown_where_there_is_one() {
    let metrics = Metrics::new();
    assert!(!metrics.render(Vec::new(), Vec::new()).contains("journal"));
    metrics.collect_journal(|| JournalMetrics {
        bytes: 900,
        limit: 1000,
        is_nearly_full: true,
        waiting: 3,
        flushed: 4,
        lost: 5,
        damaged: 6,
        seconds_since_success: 7.5,
    });
    assert_lines(
        &metrics,
        &[
            "omniglot_journal_bytes 900",
            "omniglot_journal_limit_bytes 1000",
            "omniglot_journal_nearly_full 1",
            "omniglot_journal_waiting 3",
            "omniglot_journal_carried_total 4",
            "omniglot_journal_lost_total 5",
            "omniglot_journal_damaged_total 6",
            "omniglot_journal_behind_seconds 7.5",
        ],
    );
}

#[track_caller]
fn assert_lines(metrics: &Metrics, expected: &[&str]) {
    let text = metrics.render(Vec::new(), Vec::new());
    for line in expected {
        assert!(
            text.lines().any(|written| written == *line),
            "{line} in\n{text}"
        );
    }
}

#[test]
fn a_served_request_shows_in_every_metric_about_requests() {
    let metrics = Metrics::new();
    metrics.record_request(&SERVED);
    metrics.record_request(&SERVED);
    metrics.record_request(&ServedRequest {
        status: 429,
        upstream: "",
        metered: None,
        ..SERVED
    });
    assert_lines(
        &metrics,
        &[
            r#"omniglot_requests_total{format="chat",model="acme-large",upstream="acme",status="200"} 2"#,
            r#"omniglot_requests_total{format="chat",model="acme-large",upstream="",status="429"} 1"#,
            r#"omniglot_first_byte_seconds_bucket{le="0.001",format="chat",model="acme-large"} 0"#,
            r#"omniglot_first_byte_seconds_bucket{le="0.0025",format="chat",model="acme-large"} 3"#,
            r#"omniglot_added_seconds_bucket{le="0.0001",format="chat",model="acme-large"} 0"#,
            r#"omniglot_added_seconds_bucket{le="0.00025",format="chat",model="acme-large"} 3"#,
            r#"omniglot_request_seconds_bucket{le="2.5",format="chat",model="acme-large"} 0"#,
            r#"omniglot_request_seconds_bucket{le="5.0",format="chat",model="acme-large"} 3"#,
            r#"omniglot_request_seconds_bucket{le="300.0",format="chat",model="acme-large"} 3"#,
            r#"omniglot_request_seconds_sum{format="chat",model="acme-large"} 9.0"#,
            r#"omniglot_received_bytes_total{format="chat"} 300"#,
            r#"omniglot_sent_bytes_total{format="chat"} 6000"#,
            r#"omniglot_tokens_total{model="acme-large",kind="input"} 20"#,
            r#"omniglot_tokens_total{model="acme-large",kind="cached"} 8"#,
            r#"omniglot_tokens_total{model="acme-large",kind="output"} 14"#,
            r#"omniglot_tokens_total{model="acme-large",kind="thinking"} 6"#,
        ],
    );
    assert!(
        !metrics
            .render(Vec::new(), Vec::new())
            .contains("cache_written")
    );
}

#[test]
fn a_request_without_format_or_reply_is_counted_too() {
    let metrics = Metrics::new();
    metrics.record_request(&ServedRequest {
        format: None,
        model: "",
        first_byte: None,
        added: None,
        ..SERVED
    });
    assert_lines(
        &metrics,
        &[
            r#"omniglot_requests_total{format="none",model="",upstream="acme",status="200"} 1"#,
            r#"omniglot_request_seconds_count{format="none",model=""} 1"#,
        ],
    );
    assert!(
        !metrics
            .render(Vec::new(), Vec::new())
            .contains("first_byte_seconds_count")
    );
}

#[test]
fn failures_reloads_and_the_version_are_told() {
    let metrics = Metrics::new();
    metrics.upstream_failed("acme", FailureCause::Tls);
    metrics.upstream_failed("acme", FailureCause::Tls);
    metrics.upstream_failed("acme", FailureCause::Malformed);
    metrics.record_reload(true);
    metrics.record_reload(false);
    let version = env!("CARGO_PKG_VERSION");
    assert_lines(
        &metrics,
        &[
            r#"omniglot_upstream_failures_total{upstream="acme",cause="tls"} 2"#,
            r#"omniglot_upstream_failures_total{upstream="acme",cause="unreadable"} 1"#,
            r#"omniglot_config_reloads_total{outcome="taken"} 1"#,
            r#"omniglot_config_reloads_total{outcome="refused"} 1"#,
            &format!(r#"omniglot_build_info{{version="{version}"}} 1"#),
            "# EOF",
        ],
    );
}

#[test]
fn in_flight_returns_to_zero_also_after_a_panic() {
    let metrics = Metrics::new();
    let first = metrics.in_flight();
    let second = metrics.in_flight();
    assert_eq!(metrics.requests_in_flight(), 2);
    assert_lines(&metrics, &["omniglot_requests_in_flight 2"]);
    drop(first);
    assert_eq!(metrics.requests_in_flight(), 1);
    let panicked = std::panic::catch_unwind(move || {
        let _held = second;
        std::panic::resume_unwind(Box::new("cut"));
    });
    assert!(panicked.is_err());
    assert_eq!(metrics.requests_in_flight(), 0);
}

#[test]
fn counts_of_many_threads_add_up() {
    let metrics = Metrics::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| metrics.record_request(&SERVED)));
        }
    });
    assert_lines(
        &metrics,
        &[
            r#"omniglot_requests_total{format="chat",model="acme-large",upstream="acme",status="200"} 400"#,
        ],
    );
}
