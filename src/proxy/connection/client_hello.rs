//! The first message of a TLS handshake: it is waited for here, because pingora would wait a minute for it.

use pingora_core::protocols::Peek as _;
use pingora_core::protocols::l4::stream::Stream as TcpStream;
use tokio::io::{Error, Result};

/// The length of a record's header, and of a handshake message's.
const RECORD_HEADER: usize = 5;
const MESSAGE_HEADER: usize = 4;
const HANDSHAKE: u8 = 22;
/// The limit of the message, in bytes and in records; no client needs more.
const MAX_BYTES: usize = 64 << 10;
const MAX_RECORDS: usize = 16;

/// Returns when the whole message has come. What is no such message is for the handshake to refuse.
pub(in crate::proxy) async fn arrived(stream: &mut TcpStream) -> Result<()> {
    let mut seen = Vec::new();
    // Each record is asked for in two steps: its header tells its length.
    for _ in 0..2 * MAX_RECORDS {
        let Some(length) = needed(&seen) else {
            return Ok(());
        };
        if length > MAX_BYTES {
            return Err(Error::other("the ClientHello is too long"));
        }
        seen.resize(length, 0);
        stream.try_peek(&mut seen).await?;
    }
    Err(Error::other("the ClientHello has too many records"))
}

/// How many bytes must have come before more can be said; `None`: the message is complete, or it is none.
fn needed(seen: &[u8]) -> Option<usize> {
    let (mut at, mut message) = (0, Vec::new());
    loop {
        let Some(header) = seen.get(at..at + RECORD_HEADER) else {
            return Some(at + RECORD_HEADER);
        };
        let length = usize::from(u16::from_be_bytes([header[3], header[4]]));
        if header[0] != HANDSHAKE || length == 0 {
            return None;
        }
        at += RECORD_HEADER;
        let Some(fragment) = seen.get(at..at + length) else {
            return Some(at + length);
        };
        at += length;
        message.extend_from_slice(fragment);
        if let [_, high, middle, low, ..] = message[..] {
            let length = u32::from_be_bytes([0, high, middle, low]) as usize;
            if message.len() >= MESSAGE_HEADER + length {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::needed;

    #[test]
    fn a_message_is_complete_with_the_last_byte_of_its_last_record() {
        let one = [&[22, 3, 1, 0, 7, 1, 0, 0, 3][..], b"abc"].concat();
        let two = [&[22, 3, 1, 0, 2, 1, 0, 22, 3, 1, 0, 5, 0, 3][..], b"abc"].concat();
        for (message, steps) in [(one, vec![5, 12]), (two, vec![5, 7, 12, 17])] {
            for end in 0..message.len() {
                let next = steps.iter().find(|step| **step > end);
                assert_eq!(needed(&message[..end]).as_ref(), next, "{end}");
            }
            assert_eq!(needed(&message), None);
        }
        for other in [&b"GET / HTTP/1.1"[..], &[21, 3, 1, 0, 2], &[22, 3, 1, 0, 0]] {
            assert_eq!(needed(other), None);
        }
    }
}
