//! An upstream that does byte by byte what the fault does whose number the prompt carries.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use omniglot_test_support::FORMATS;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::fault_table::Fault;
use crate::mock_responses::{RecordedResponses, Shape, WORD};

/// Precedes the number of a fault in a prompt.
pub const MARK: &str = "misdeed-";

/// Requests below this path always get a good response.
pub const GOOD_PATH: &str = "/good";

/// Short enough that no idle timeout fires.
pub const SEND_INTERVAL: Duration = Duration::from_millis(10);

/// A step of a fault; after the last one the upstream reads the next request.
#[derive(Debug, Clone)]
pub enum Step {
    /// Sends bytes.
    Write(Vec<u8>),
    /// Sends the same bytes so many times.
    Repeat(Vec<u8>, usize),
    /// Sends the same bytes every SEND_INTERVAL until the other side closes.
    WriteSlowly(Vec<u8>),
    /// Sends nothing until the other side closes.
    Hang,
    /// Closes the connection with FIN.
    Close,
    /// Closes the connection with a reset, which discards unread bytes.
    Reset,
}

pub async fn start(faults: Arc<Vec<Fault>>, recorded: Arc<RecordedResponses>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (faults, recorded) = (faults.clone(), recorded.clone());
            tokio::spawn(async move {
                // The gateway may close the connection because of a fault.
                let _ = serve(stream, &faults, &recorded).await;
            });
        }
    });
    address
}

async fn serve(
    mut stream: TcpStream,
    faults: &[Fault],
    recorded: &RecordedResponses,
) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut unread = Vec::new();
    while let Some(request) = next_request(&mut stream, &mut unread).await? {
        let number = after(&request, MARK).expect("a prompt with a fault");
        let number: usize = number.parse().expect("the number of a fault");
        let fault = match path(&request).starts_with(GOOD_PATH) {
            true => &faults[0],
            false => &faults[number],
        };
        let (format, shape) = expected_response(&request);
        let reply = recorded.reply(format, shape, fault.words);
        let word = after(&request, &WORD[..5]).expect("a word to repeat");
        let reply = reply.with_word(&format!("{}{word}", &WORD[..5]));
        for step in (fault.steps)(&reply) {
            if !perform(&mut stream, step).await? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// `false`: that was the last of the connection.
async fn perform(stream: &mut TcpStream, step: Step) -> io::Result<bool> {
    match step {
        Step::Write(bytes) => stream.write_all(&bytes).await?,
        Step::Repeat(bytes, times) => {
            for _ in 0..times {
                stream.write_all(&bytes).await?;
            }
        }
        Step::WriteSlowly(bytes) => loop {
            stream.write_all(&bytes).await?;
            tokio::time::sleep(SEND_INTERVAL).await;
        },
        Step::Hang => {
            let mut nothing = [0; 1024];
            while stream.read(&mut nothing).await? > 0 {}
            return Ok(false);
        }
        Step::Close => {
            stream.shutdown().await?;
            return Ok(false);
        }
        Step::Reset => {
            stream.set_zero_linger()?;
            return Ok(false);
        }
    }
    Ok(true)
}

async fn next_request(stream: &mut TcpStream, unread: &mut Vec<u8>) -> io::Result<Option<Vec<u8>>> {
    loop {
        if let Some(length) = whole(unread) {
            return Ok(Some(unread.drain(..length).collect()));
        }
        if stream.read_buf(unread).await? == 0 {
            return Ok(None);
        }
    }
}

/// The length of the request at the front, once all of it is there.
fn whole(bytes: &[u8]) -> Option<usize> {
    let end = omniglot_test_support::find_bytes(bytes, b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
    let length = head
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "));
    let length: usize = length?.trim().parse().expect("a length");
    (bytes.len() >= end + length).then_some(end + length)
}

fn path(request: &[u8]) -> &str {
    let line = request.split(|byte| *byte == b'\r').next();
    let line = std::str::from_utf8(line.unwrap_or_default()).expect("a request line");
    line.split(' ').nth(1).expect("a path")
}

/// The digits that follow the first place where a word stands.
fn after<'r>(request: &'r [u8], word: &str) -> Option<&'r str> {
    let at = omniglot_test_support::find_bytes(request, word.as_bytes())? + word.len();
    let rest = &request[at..];
    let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    std::str::from_utf8(&rest[..length]).ok()
}

/// In which format, and how, the request wants to be answered.
fn expected_response(request: &[u8]) -> (&'static str, Shape) {
    let path = path(request);
    let format = match path {
        path if path.contains("/chat/completions") => "chat",
        path if path.contains("/messages") => "messages",
        path if path.contains("/responses") => "responses",
        _ => "native",
    };
    let shape = match path.split(':').nth(1) {
        Some(verb) if verb.contains("alt=sse") => Shape::Events,
        Some(verb) if verb.starts_with("stream") => Shape::Array,
        Some(_) => Shape::Json,
        None => {
            let body = String::from_utf8_lossy(request).replace(' ', "");
            match body.contains("\"stream\":true") {
                true => Shape::Events,
                false => Shape::Json,
            }
        }
    };
    let (format, _) = FORMATS
        .into_iter()
        .find(|(name, _)| *name == format)
        .expect("a format");
    (format, shape)
}
