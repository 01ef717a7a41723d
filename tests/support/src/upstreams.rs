//! Small upstreams that send a fixed response, or the body of the request.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use crate::config::KEY;
use crate::gateway::Gateway;

/// Starts an upstream that sends the same response to every request, chunk by chunk, and then closes the connection.
pub fn fixed_response_upstream(chunks: Vec<Vec<u8>>) -> SocketAddr {
    serve_connections(move |stream| send_response(stream, &chunks))
}

/// Starts a native upstream that accepts every request and responds with its body as the text.
pub fn echo_upstream() -> SocketAddr {
    serve_connections(|mut stream| {
        let request = read_request(&mut stream)?;
        let text = String::from_utf8_lossy(&request).into_owned();
        let (_, body) = text.split_once("\r\n\r\n").unwrap_or_default();
        let parts = serde_json::json!([{"text": body}]);
        let response = serde_json::json!({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]});
        stream.write_all(&response_head("200 OK", "application/json"))?;
        stream.write_all(response.to_string().as_bytes())
    })
}

/// Starts a server that accepts one connection after the other, each with one request.
fn serve_connections(
    serve: impl Fn(TcpStream) -> std::io::Result<()> + Send + 'static,
) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A gateway that closes the connection early is not a failure of the upstream.
            let _ = serve(stream);
        }
    });
    address
}

fn send_response(mut stream: TcpStream, chunks: &[Vec<u8>]) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    read_request(&mut stream)?;
    for (number, chunk) in chunks.iter().enumerate() {
        if number > 0 {
            // The pause makes it likely that chunks are read one by one; nothing depends on it.
            std::thread::sleep(Duration::from_millis(10));
        }
        stream.write_all(chunk)?;
    }
    Ok(())
}

/// Reads a whole request, head and body.
pub(crate) fn read_request(stream: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut request = Vec::new();
    while !is_complete(&request) {
        let mut buffer = [0; 4096];
        match stream.read(&mut buffer)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => request.extend_from_slice(&buffer[..count]),
        }
    }
    Ok(request)
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, _)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| {
        let line = line.to_ascii_lowercase();
        line.strip_prefix("content-length: ")?.parse::<usize>().ok()
    });
    request.len() >= head.len() + 4 + length.unwrap_or(0)
}

/// Returns the head of a response whose body ends with the connection.
pub fn response_head(status: &str, content_type: &str) -> Vec<u8> {
    format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n")
        .into_bytes()
}

/// Starts a gateway with the models `case-0`, `case-1` …, each at an upstream with a fixed response: its format, the head
/// of the response, and the body.
pub fn gateway_with_fixed_responses(cases: &[(&str, Vec<u8>, &str)]) -> Gateway {
    let (mut upstreams, mut models) = (String::new(), String::new());
    for (number, (format, head, body)) in cases.iter().enumerate() {
        let address = fixed_response_upstream(vec![head.clone(), body.as_bytes().to_vec()]);
        upstreams += &format!(
            "  - {{name: puppet-{number}, format: {format}, base_url: \"http://{address}\"}}\n"
        );
        models += &format!("  - {{id: case-{number}, upstreams: [{{name: puppet-{number}}}]}}\n");
    }
    Gateway::start(&format!(
        "server: {{listen: LISTEN, admin: ADMIN}}\nkeys: [{{name: all, secret: {KEY}}}]\n\
         upstreams:\n{upstreams}models:\n{models}"
    ))
}
