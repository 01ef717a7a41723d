//! The number of open connections where a shell limits the open files.

use std::process::Command;

use omniglot_test_support::{Gateway, Http1Connection, KEY, Mock, http1_post, request, wait_until};

/// A gateway in a shell that was told `ulimit`, with a model `m0`, `m1` … at each backend.
fn limited(limit: &str, mocks: &[Mock]) -> Gateway {
    let mut upstreams = "upstreams:\n".to_owned();
    let mut models = "models:\n".to_owned();
    for (number, mock) in mocks.iter().enumerate() {
        let url = mock.url("/v1");
        upstreams += &format!("  - {{name: up{number}, format: chat, base_url: \"{url}\"}}\n");
        models += &format!("  - {{id: m{number}, upstreams: [{{name: up{number}}}]}}\n");
    }
    let server = "server: {listen: LISTEN, admin: ADMIN}";
    let keys = format!("keys: [{{name: all, secret: {KEY}}}]");
    let config = format!("{server}\n{keys}\n{upstreams}{models}");
    Gateway::start_with(&config, |command| {
        let mut shell = Command::new("sh");
        let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
        shell.args(["-c", &script]).arg(command.get_program());
        shell.args(command.get_args());
        *command = shell;
    })
}

/// So many clients who all have a request at the upstream at the same time, and are all answered.
async fn at_once(gateway: &Gateway, mock: &Mock, model: &str, clients: usize) {
    let words = "mock:name=crowd mock:wait=crowd";
    let (path, body) = request("chat", model, words, false);
    let asked = http1_post(&path, "", &body.to_string());
    let mut wires = Vec::new();
    for _ in 0..clients {
        let mut connection = Http1Connection::connect(gateway.address).await;
        connection.send(&asked).await;
        wires.push(connection);
    }
    mock.until_seen("crowd", "waiting", clients as u64).await;
    mock.signal("crowd", clients).await;
    for mut connection in wires {
        let response = connection.read_message().await.expect("a reply");
        assert_eq!(response.status(), 200, "{}", response.text());
    }
}

#[tokio::test]
async fn the_soft_limit_of_open_files_is_raised_to_the_hard_limit() {
    let mocks = [Mock::start()];
    let gateway = limited("-Sn 100", &mocks);
    at_once(&gateway, &mocks[0], "m0", 200).await;
}

#[tokio::test]
async fn idle_connections_to_one_upstream_leave_room_for_another() {
    let mocks = [Mock::start(), Mock::start(), Mock::start()];
    let gateway = limited("-n 216", &mocks);
    let before = gateway.descriptors();
    for (number, mock) in mocks.iter().enumerate() {
        at_once(&gateway, mock, &format!("m{number}"), 50).await;
        wait_until("the clients are gone", async || {
            gateway.descriptors() <= before + 50 * (number + 1)
        })
        .await;
    }
}
