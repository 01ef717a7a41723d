//! A thousand concurrent requests at three gateways with one spending cap, however they end.

use omniglot_test_support::{FORMATS, Gateway, Postgres, send};

use crate::{Replicas, capped_request, money, spend_rest, total_cost, wait_until_flushed};

const REQUESTS: usize = 1000;

const ENDS: [(&str, bool); 8] = [
    ("mock:usage=5,0,100,0 mock:text=hi", false),
    ("mock:usage=5,0,100,0 mock:text=hi", true),
    ("mock:usage=5,0,40,0 mock:text=hi", true),
    ("mock:error=500", false),
    ("mock:error=400", true),
    ("mock:events=9 mock:stream_error=4", true),
    ("mock:events=9 mock:cut=7", true),
    ("mock:garbage", false),
];

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs PostgreSQL"]
async fn concurrent_requests_at_three_gateways_spend_exactly_one_cap() {
    let postgres = Postgres::shared();
    let replicas = Replicas::on(postgres.url(&postgres.database()));
    let gateways: Vec<Gateway> = (0..3).map(|number| replicas.start(number)).collect();
    let (mut asked, mut leaving) = (Vec::new(), Vec::new());
    for number in 0..REQUESTS {
        let gateway = &gateways[number % 3];
        let (format, _) = FORMATS[number % 4];
        // Every ninth client leaves: at once, or when its stream has begun.
        if number % 9 == 0 {
            let words = "mock:usage=5,0,40,0 mock:text=hi mock:wait=go";
            let asked = capped_request(gateway, format, words, 100, number % 2 == 0);
            leaving.push(tokio::spawn(async move {
                let begun = asked.send().await.expect("an answer");
                begun.status().as_u16()
            }));
            continue;
        }
        let (words, stream) = ENDS[number % 8];
        let request = capped_request(gateway, format, words, 100, stream);
        asked.push(tokio::spawn(send(request)));
    }
    for response in asked {
        let response = response.await.expect("no panic");
        assert!(
            matches!(response.status, 200 | 400 | 429 | 500 | 502),
            "{}",
            response.text()
        );
    }
    leaving.iter().for_each(tokio::task::JoinHandle::abort);
    // Their responses are paid for all the same: those of ten clients at most, each with fewer than 20 events.
    replicas.mock.signal("go", 200).await;
    wait_until_flushed(&gateways).await;
    let store = replicas.open().await;
    let crowd = total_cost(&store).await;
    assert!(crowd > money("0.1") && crowd <= money("1"), "{crowd}");
    // Nothing stays held and no slice is kept from the others.
    spend_rest(&gateways, &[100, 10, 1]).await;
    wait_until_flushed(&gateways).await;
    assert_eq!(total_cost(&store).await, money("1"));
}
