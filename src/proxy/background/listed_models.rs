//! The models that an upstream lists, read page by page.

use std::fmt;
use std::time::Duration;

use pingora_core::Error;
use tokio::time::timeout;

use super::background_client::BackgroundClient;
use crate::runtime::Upstream;

/// For all pages of a list.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// All pages of a list together.
const MAX_LIST: usize = 4 << 20;

const MAX_PAGES: usize = 100;

/// Why there is no list.
#[derive(Debug)]
pub enum ListFailure {
    /// The upstream answered, with another status than 200.
    Status(u16),
    /// In words for the log, which may hold credentials.
    Failed(String),
}

impl fmt::Display for ListFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListFailure::Status(status) => write!(formatter, "it answered with status {status}"),
            ListFailure::Failed(reason) => formatter.write_str(reason),
        }
    }
}

impl From<Box<Error>> for ListFailure {
    fn from(error: Box<Error>) -> ListFailure {
        ListFailure::Failed(error.to_string())
    }
}

impl From<&str> for ListFailure {
    fn from(reason: &str) -> ListFailure {
        ListFailure::Failed(reason.to_owned())
    }
}

/// Reads the list of an upstream.
pub(in crate::proxy) async fn list_models(
    client: &BackgroundClient,
    upstream: &Upstream,
) -> Result<Vec<String>, ListFailure> {
    let read = timeout(READ_TIMEOUT, read_pages(client, upstream)).await;
    read.unwrap_or_else(|_| Err("it took too long".into()))
}

async fn read_pages(
    client: &BackgroundClient,
    upstream: &Upstream,
) -> Result<Vec<String>, ListFailure> {
    let (mut names, mut left, mut next) = (Vec::new(), MAX_LIST, None::<String>);
    for _ in 0..MAX_PAGES {
        let path = upstream.format.model_list_path(next.as_deref());
        let body = read_page(client, upstream, &path, left).await?;
        left -= body.len();
        let page = upstream.format.decode_model_list(&body);
        let page = page.ok_or("its response is no list of models")?;
        names.extend(page.names);
        match page.next {
            // A server that does not know the parameter sends the first page for ever.
            Some(token) if next.as_ref() != Some(&token) => next = Some(token),
            _ => return Ok(names),
        }
    }
    let message = format!("it has more than {MAX_PAGES} pages");
    Err(ListFailure::Failed(message))
}

async fn read_page(
    client: &BackgroundClient,
    upstream: &Upstream,
    path: &str,
    limit: usize,
) -> Result<Vec<u8>, ListFailure> {
    let field = upstream.format.model_list_header();
    let connect = upstream.timeouts.connect;
    let mut session = client.get(upstream, path, field, connect).await?;
    let status = session
        .response_header()
        .map_or(0, |header| header.status.as_u16());
    let mut body = Vec::new();
    if status == 200 {
        while let Some(chunk) = session.read_response_body().await? {
            if body.len() + chunk.len() > limit {
                session.shutdown().await;
                return Err("it is larger than 4 MiB".into());
            }
            body.extend_from_slice(&chunk);
        }
    }
    session.shutdown().await;
    match status {
        200 => Ok(body),
        status => Err(ListFailure::Status(status)),
    }
}
