//! What a client must see where the upstream fails.

use super::client_view::ClientView;
use super::http_client::ClientReply;
use super::judge::Verdict;
use super::scenario::UpstreamFault;
use super::upstream::fault_message;

/// Judges what came of a fault; a strict scenario wants the error in the client's shape to the letter.
pub fn judge(
    (fault, is_strict): (UpstreamFault, bool),
    view: &ClientView,
    reply: &Result<ClientReply, String>,
    verdict: &mut Verdict,
) {
    match view {
        ClientView::Whole(_) => verdict.lose("failure: the client takes the response for whole"),
        ClientView::Broken(reason) => verdict.lose(format!(
            "failure: no error of the client's format: {reason}"
        )),
        ClientView::Nothing(reason) => match fault {
            UpstreamFault::Hang => verdict.lose(format!(
                "failure: the gateway hangs with its upstream: {reason}"
            )),
            _ => verdict.lose(format!("failure: {reason}")),
        },
        // Its client knows that something is missing, and not why.
        ClientView::Cut => verdict
            .opinions
            .push("failure: the connection was cut, without an error".to_owned()),
        ClientView::Error {
            status,
            message,
            flaw,
        } => {
            if let Some(flaw) = flaw.as_ref().filter(|_| is_strict) {
                verdict.lose(format!("failure: no error of the client's format: {flaw}"));
            }
            if let UpstreamFault::Status {
                status: sent,
                retry_after,
            } = fault
            {
                judge_status(sent, *status, message, verdict);
                judge_retry_after(retry_after, reply, verdict);
            }
        }
    }
}

fn judge_status(sent: u16, seen: u16, message: &str, verdict: &mut Verdict) {
    let fits = match sent {
        400 | 404 | 429 => sent == seen,
        // The key is the gateway's, not the client's: some say so with a 5xx.
        401 | 403 => seen >= 400,
        _ => seen >= 500,
    };
    if !fits {
        verdict.lose(format!("failure: the status was {sent}, became {seen}"));
    }
    if !message.contains(&fault_message(sent)) {
        let lost = format!("failure: the words of the {sent} are lost: {message}");
        match sent {
            400 => verdict.lose(lost),
            _ => verdict.opinions.push(lost),
        }
    }
}

fn judge_retry_after(
    sent: Option<u32>,
    reply: &Result<ClientReply, String>,
    verdict: &mut Verdict,
) {
    let (Some(sent), Ok(reply)) = (sent, reply) else {
        return;
    };
    let seen = reply
        .headers
        .get("retry-after")
        .and_then(|value| value.to_str().ok());
    let seen = seen.and_then(|value| value.parse::<u32>().ok());
    if seen != Some(sent) {
        verdict.lose(format!("failure: retry-after was {sent}, became {seen:?}"));
    }
}
