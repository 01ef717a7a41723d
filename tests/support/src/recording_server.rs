//! An HTTP server that records its requests and answers each as a function says.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use crate::upstreams::read_request;

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct RecordedRequest {
    /// Method and target, as in `POST /v1/messages?beta=true`.
    pub line: String,
    /// The headers, with names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl RecordedRequest {
    fn parse(bytes: &[u8]) -> RecordedRequest {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let mut lines = head.lines();
        let line = lines.next().unwrap_or_default();
        let headers = lines.filter_map(|line| line.split_once(": "));
        RecordedRequest {
            line: line.trim_end_matches(" HTTP/1.1").to_owned(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .collect(),
            body: body.to_owned(),
        }
    }

    /// The value of a header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        let mut headers = self.headers.iter();
        let found = headers.find(|(of, _)| of == name);
        found.map_or("", |(_, value)| value)
    }

    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// A server on a port of its own.
pub struct RecordingServer {
    pub address: SocketAddr,
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
}

impl RecordingServer {
    /// Starts a server. `answer` gets the request and its number, from 0 on, and returns status, content type and body.
    pub fn start(
        answer: impl Fn(&RecordedRequest, usize) -> (u16, &'static str, String) + Send + Sync + 'static,
    ) -> RecordingServer {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let requests: Arc<Mutex<Vec<RecordedRequest>>> = Arc::default();
        let (recorded, answer) = (requests.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (recorded, answer) = (recorded.clone(), answer.clone());
                std::thread::spawn(move || serve(stream, &recorded, &*answer));
            }
        });
        RecordingServer { address, requests }
    }

    /// The URL of a path at the server.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.clone()
    }
}

fn serve(
    mut stream: TcpStream,
    recorded: &Mutex<Vec<RecordedRequest>>,
    answer: &dyn Fn(&RecordedRequest, usize) -> (u16, &'static str, String),
) {
    let Ok(request) = read_request(&mut stream) else {
        return;
    };
    let request = RecordedRequest::parse(&request);
    let number = {
        let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
        recorded.push(request.clone());
        recorded.len() - 1
    };
    let (status, content_type, body) = answer(&request, number);
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Status\r\ncontent-type: {content_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    );
    // Whoever asked may be gone.
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(body.as_bytes());
}
