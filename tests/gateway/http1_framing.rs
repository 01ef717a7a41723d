//! Where requests of HTTP/1 begin and end: in whatever pieces they come, and however long their headers are.

use omniglot_test_support::{
    Gateway, Http1Connection, Http1Message, KEY, Mock, every_format_config, http1_post,
    http1_post_head, request,
};

/// As much of a header as is read, though no more than 64 KiB of it is kept.
const MAX_READ: usize = 1 << 20;

fn start(mock: &Mock) -> Gateway {
    Gateway::start(&every_format_config(mock.address))
}

fn chat() -> (String, String) {
    let (path, body) = request("chat", "same-chat", "one two", false);
    (path, body.to_string())
}

fn chunked(more: &str) -> String {
    http1_post_head(&chat().0, &format!("{more}transfer-encoding: chunked\r\n"))
}

/// The body of a chat in two chunks.
fn in_chunks() -> String {
    let (_, body) = chat();
    let (first, second) = body.split_at(7);
    let length = second.len();
    format!("7 ;a=\"b\"\r\n{first}\r\n{length:x}\r\n{second}\r\n0\r\nx-trailer: a\r\n\r\n")
}

async fn response(connection: &mut Http1Connection) -> Http1Message {
    let message = connection.read_message().await;
    message.expect("a response")
}

#[tokio::test]
async fn requests_come_in_any_pieces() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let (path, body) = chat();
    let models = format!("GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n");
    let requests = [
        http1_post(&path, "", &body),
        format!("{models}\r\n"),
        format!("\r\n{models}x-long: {}\r\n\r\n", "a".repeat(20_000)),
        chunked("") + &in_chunks(),
        http1_post(&path, "", &body),
    ];
    for length in [1, 3, 16, 700, 5000, 1 << 20] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        connection.stream.set_nodelay(true).expect("an option");
        for request in &requests {
            // The long header by single bytes would be all that this test does.
            let length = if request.len() > 9000 {
                length.max(64)
            } else {
                length
            };
            for piece in request.as_bytes().chunks(length) {
                connection.send(piece).await;
            }
            let answer = response(&mut connection).await;
            assert_eq!(answer.status(), 200, "{length}: {}", answer.text());
        }
        // All at once, but the chunks: who sends these ahead is served, and then the connection is closed.
        let ahead = [&*requests[0], &requests[1], &requests[4], &requests[3]].concat();
        for piece in ahead.as_bytes().chunks(length) {
            connection.send(piece).await;
        }
        for _ in 0..4 {
            assert_eq!(response(&mut connection).await.status(), 200, "{length}");
        }
    }
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_connection_is_closed_after_chunks_that_were_sent_ahead() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let (path, body) = chat();
    let mut connection = Http1Connection::connect(gateway.address).await;
    // So little is sent and read as one.
    let both = http1_post(&path, "", &body) + &chunked("") + &in_chunks();
    connection.send(both).await;
    let first = response(&mut connection).await;
    assert_eq!(first.status(), 200);
    assert_ne!(first.header("connection"), Some("close"));
    let second = response(&mut connection).await;
    assert_eq!(second.status(), 200);
    assert_eq!(second.header("connection"), Some("close"));
    assert!(connection.read_message().await.is_none());
    gateway.until_idle().await;
}

#[tokio::test]
async fn a_header_that_is_too_long_is_refused_over_http1() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let (path, _) = chat();
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\nx-long: ");
    let value = "a".repeat(MAX_READ);
    let mut connection = Http1Connection::connect(gateway.address).await;
    let text = format!("{head}{}\r\n\r\n", &value[..70_000]);
    connection.send(text).await;
    let answer = response(&mut connection).await;
    assert_eq!(answer.status(), 431);
    for (name, text) in [
        (
            "a longer value",
            format!("{head}{}\r\n\r\n", &value[..300_000]),
        ),
        ("no end", format!("{head}{value}")[..MAX_READ].to_owned()),
        (
            "several lines",
            format!(
                "{head}a\r\n{}\r\n",
                format!("y: {}\r\n", &value[..9000]).repeat(20)
            ),
        ),
    ] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        connection.send(text).await;
        let answer = response(&mut connection).await;
        assert_eq!(answer.status(), 431, "{name}");
        assert!(answer.text().contains("longer than 65536"), "{name}");
        assert!(connection.read_message().await.is_none(), "{name}");
    }
    // pingora takes no target of this length.
    for end in [" HTTP/1.1\r\n\r\n", &value[..MAX_READ - 200_005]] {
        let mut connection = Http1Connection::connect(gateway.address).await;
        let text = format!("GET /{}{end}", &value[..200_000]);
        connection.send(text).await;
        let answer = response(&mut connection).await;
        assert_eq!(answer.status(), 400);
        assert!(connection.read_message().await.is_none());
    }
    gateway.until_idle().await;
}

/// Another proxy may end an extension with LF alone, or take an empty line for an error and not for the end.
#[tokio::test]
async fn the_head_of_a_chunk_is_a_size_and_an_extension_in_one_line() {
    let mock = Mock::start();
    let gateway = start(&mock);
    let (_, body) = chat();
    let length = body.len();
    let whole = format!("{length:x}\r\n{body}\r\n");
    for invalid in [
        format!("{length:x};\nyy\r\n{body}\r\n0\r\n\r\n"),
        format!("{whole}0;\nGET /api/models HTTP/1.1\r\n\r\n"),
        format!("{whole}\r\n"),
        format!("{whole};a\r\n\r\n"),
        format!("{whole}0;\u{1}\r\n\r\n"),
        "\r\n\r\n".to_owned(),
    ] {
        let next =
            format!("GET /v1/models HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {KEY}\r\n\r\n");
        let mut connection = Http1Connection::connect(gateway.address).await;
        // The first one is valid: the connection stays open.
        connection.send(chunked("") + &in_chunks()).await;
        assert_eq!(response(&mut connection).await.status(), 200, "{invalid:?}");
        connection.send(chunked("") + &invalid + &next).await;
        assert_refused(&mut connection, &invalid).await;

        let mut connection = Http1Connection::connect(gateway.address).await;
        connection.send(chunked("expect: 100-continue\r\n")).await;
        let head = connection.read_head().await.expect("a response");
        assert_eq!(head.status(), 100);
        // It comes behind the header, by itself.
        connection.send(&invalid).await;
        assert_refused(&mut connection, &invalid).await;
    }
    gateway.until_idle().await;
}

async fn assert_refused(connection: &mut Http1Connection, sent: &str) {
    let answer = response(connection).await;
    assert_eq!(answer.status(), 400, "{sent:?}: {}", answer.text());
    assert!(
        answer.text().contains("head of a chunk"),
        "{}",
        answer.text()
    );
    let rest = connection.read_until_closed().await;
    assert!(
        rest.is_empty(),
        "{sent:?}: {}",
        String::from_utf8_lossy(&rest)
    );
}
