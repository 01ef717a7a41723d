//! What was spent before a restart still counts, for keys of the config and of the store.

use omniglot::model::{Money, Receipt, Usage};

use super::{ask, command, config, create};
use crate::Place;
use crate::stage::{Gateway, KEY, Mock, until};

fn receipt(id: &str, key: &str, cost: &str) -> Receipt {
    Receipt {
        id: id.to_owned(),
        at: jiff::Timestamp::now().as_millisecond(),
        key: key.to_owned(),
        model: "chat".to_owned(),
        upstream: "chat".to_owned(),
        format: "chat".to_owned(),
        stream: false,
        status: 200,
        usage: Usage {
            input: 5,
            output: 700,
            ..Usage::default()
        },
        images: 0,
        estimated: true,
        cost: Money::parse(cost).expect("an amount"),
    }
}

#[tokio::test]
async fn a_restart_forgets_nothing_that_was_written_down() {
    let mock = Mock::start();
    for place in Place::all() {
        let gateway = Gateway::start(&config(&mock, &place));
        let capped = ["dev", "--cap", "0.8", "--reset", "monthly"];
        let secret = create(&gateway, &capped);
        for secret in [KEY, &secret] {
            assert_eq!(ask(&gateway, "chat", secret, 100).await.status, 200);
        }
        drop(gateway);
        let receipts = [receipt("1", "all", "0.7"), receipt("2", "dev", "0.7")];
        let store = place.open().await;
        assert_eq!(store.record(&receipts).await.expect("recorded"), 2);

        let gateway = Gateway::start(&config(&mock, &place));
        for (secret, too_many, left) in [(KEY, 301, "0.3"), (&*secret, 101, "0.1")] {
            let answer = ask(&gateway, "chat", secret, too_many).await;
            assert_eq!(answer.status, 429, "{}", answer.text());
            let message = answer.error("chat");
            assert!(message.contains(&format!("has {left} left")), "{message}");
            assert_eq!(
                ask(&gateway, "chat", secret, too_many - 1).await.status,
                200
            );
            assert_eq!(ask(&gateway, "chat", secret, 1).await.status, 429);
        }
        // What this process spends is written down too; that must not count again when its key changes.
        let own = [receipt("3", "dev", "0.1")];
        assert_eq!(store.record(&own).await.expect("recorded"), 1);
        command(&gateway, &["key", "set", "dev", "--cap", "0.9"]);
        until("the higher cap holds", async || {
            ask(&gateway, "chat", &secret, 100).await.status == 200
        })
        .await;
        assert_eq!(ask(&gateway, "chat", &secret, 1).await.status, 429);

        let usage = command(
            &gateway,
            &["usage", "--csv", "--by", "key", "--since", "1d"],
        );
        let lines: Vec<_> = usage.lines().collect();
        let expected = [
            "key,requests,estimated,input,cached,cache_written,output,thinking,images,cost",
            "all,1,1,5,0,0,700,0,0,0.7",
            "dev,2,2,10,0,0,1400,0,0,0.8",
        ];
        assert_eq!(lines, expected);
        let json = command(&gateway, &["usage", "--json", "--by", "model"]);
        let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
        assert_eq!(json[0]["model"], "chat");
        assert_eq!(json[0]["cost"], 1.5);
        let table = command(&gateway, &["usage", "--by", "day"]);
        assert!(
            table
                .lines()
                .last()
                .is_some_and(|line| line.contains("1.5")),
            "{table}"
        );
        let listed = command(&gateway, &["key", "list", "--json"]);
        let listed: serde_json::Value = serde_json::from_str(&listed).expect("JSON");
        assert_eq!(listed[0]["spent"], "0.8");
        assert_eq!(listed[0]["spending_cap"], "0.9");
    }
}
