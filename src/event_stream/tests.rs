//! Messages that are cut anywhere, that were changed, and that botocore reads in the same way.

use super::*;

const LIMIT: usize = 1 << 20;

const CHUNK_HEADERS: [(&str, &str); 3] = [
    (":event-type", "chunk"),
    (":content-type", "application/json"),
    (":message-type", "event"),
];

type ReadMessages = Vec<(Vec<(String, String)>, Vec<u8>)>;

fn owned(message: &EventStreamMessage<'_>) -> (Vec<(String, String)>, Vec<u8>) {
    let headers = message.headers.iter();
    let headers = headers.map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    (headers.collect(), message.payload.to_vec())
}

fn read_pieces<'a>(
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (ReadMessages, Result<(), EventStreamError>) {
    let (mut stream, mut read) = (EventStreamMessages::default(), Vec::new());
    for piece in pieces {
        let pushed = stream.push(piece, LIMIT, |message| {
            read.push(owned(&message));
        });
        if pushed.is_err() {
            return (read, pushed);
        }
    }
    let finished = stream.finish();
    (read, finished)
}

fn encoded(headers: &[(&str, &str)], payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_event_stream_message(headers, payload, &mut out);
    out
}

/// A message with these bytes as its headers.
fn with_raw_headers(headers: &[u8], payload: &[u8]) -> Vec<u8> {
    let total = PRELUDE + headers.len() + payload.len() + CHECKSUM;
    let mut out = (total as u32).to_be_bytes().to_vec();
    out.extend((headers.len() as u32).to_be_bytes());
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out.extend(headers);
    out.extend(payload);
    out.extend(crc32fast::hash(&out).to_be_bytes());
    out
}

/// The bytes are those that botocore accepted from another writer.
#[test]
fn a_message_is_written_as_other_writers_do() {
    let payload = br#"{"bytes": "eyJ0eXBlIjoicGluZyJ9", "p": "abcd"}"#;
    let message = encoded(&CHUNK_HEADERS, payload);
    assert_eq!(message.len(), 137);
    assert_eq!(
        message[..12],
        [0, 0, 0, 0x89, 0, 0, 0, 0x4b, 0x38, 0xda, 0x95, 0x92]
    );
    assert_eq!(message[133..], [0xdf, 0xdb, 0x88, 0x68]);
}

#[test]
fn messages_are_the_same_wherever_the_stream_is_cut() {
    let mut stream = encoded(&CHUNK_HEADERS, b"{\"bytes\":\"\"}");
    encode_event_stream_message(&[], b"", &mut stream);
    encode_event_stream_message(&[(":message-type", "error"), ("x", "")], b"", &mut stream);
    let (whole, ended) = read_pieces([&stream[..]]);
    assert_eq!((whole.len(), ended), (3, Ok(())));
    for at in 0..=stream.len() {
        let (first, second) = stream.split_at(at);
        assert_eq!(
            read_pieces([first, second]),
            (whole.clone(), Ok(())),
            "{at}"
        );
    }
    assert_eq!(read_pieces(stream.chunks(1)), (whole, Ok(())));
}

#[test]
fn a_stream_that_ends_inside_of_a_message_is_cut() {
    let message = encoded(&CHUNK_HEADERS, b"payload");
    let stream = [&message[..], &message].concat();
    for end in message.len() + 1..stream.len() {
        let (read, ended) = read_pieces([&stream[..end]]);
        assert_eq!(
            (read.len(), ended),
            (1, Err(EventStreamError::Cut)),
            "{end}"
        );
    }
}

#[test]
fn no_byte_can_change_unnoticed() {
    let message = encoded(&CHUNK_HEADERS, b"payload");
    for at in 0..message.len() {
        for bit in 0..8 {
            let mut changed = message.clone();
            changed[at] ^= 1 << bit;
            let (read, ended) = read_pieces([&changed[..]]);
            assert_eq!(
                (read.len(), ended),
                (0, Err(EventStreamError::Checksum)),
                "{at}"
            );
        }
    }
}

#[test]
fn headers_of_every_type_are_read_and_unknown_types_are_refused() {
    let mut headers = Vec::new();
    for (kind, length) in [
        (0, 0),
        (1, 0),
        (2, 1),
        (3, 2),
        (4, 4),
        (5, 8),
        (8, 8),
        (9, 16),
    ] {
        headers.extend([1, b'a', kind]);
        headers.extend(vec![7; length]);
    }
    headers.extend([1, b'b', 6, 0, 2, 0xff, 0xfe]);
    headers.extend([1, b'c', 7, 0, 2, b'o', b'k']);
    let (read, ended) = read_pieces([&with_raw_headers(&headers, b"p")[..]]);
    assert_eq!(ended, Ok(()));
    assert_eq!(
        read,
        [(vec![("c".to_owned(), "ok".to_owned())], b"p".to_vec())]
    );
    for broken in [
        // An unknown type, text that is no UTF-8, values and names that end too late, and a name without a type.
        &[1, b'a', 10, 0][..],
        &[1, b'a', 7, 0, 1, 0xff],
        &[1, 0xff, 0],
        &[1, b'a', 7, 0, 2, b'o'],
        &[1, b'a', 7, 0],
        &[1, b'a', 9, 0],
        &[9, b'a'],
        &[1, b'a'],
    ] {
        let (read, ended) = read_pieces([&with_raw_headers(broken, b"p")[..]]);
        assert_eq!(
            (read.len(), ended),
            (0, Err(EventStreamError::Headers)),
            "{broken:?}"
        );
    }
}

/// The lengths alone decide: nothing of such a message is waited for.
#[test]
fn lengths_beyond_the_limits_are_refused_at_once() {
    let largest = PRELUDE + CHECKSUM + LIMIT;
    for (total, headers, expected) in [
        (largest, 0, Ok(())),
        (largest + 1, 0, Err(EventStreamError::TooLarge)),
        (u32::MAX as usize, 0, Err(EventStreamError::TooLarge)),
        (1 << 20, MAX_HEADERS, Ok(())),
        (1 << 20, MAX_HEADERS + 1, Err(EventStreamError::TooLarge)),
        (15, 0, Err(EventStreamError::Length)),
        (0, 0, Err(EventStreamError::Length)),
        (100, 85, Err(EventStreamError::Length)),
        (100, u32::MAX as usize, Err(EventStreamError::Length)),
    ] {
        let mut prelude = (total as u32).to_be_bytes().to_vec();
        prelude.extend((headers as u32).to_be_bytes());
        prelude.extend(crc32fast::hash(&prelude).to_be_bytes());
        let mut stream = EventStreamMessages::default();
        let pushed = stream.push(&prelude, LIMIT, |_| {});
        assert_eq!(pushed, expected, "{total} {headers}");
    }
}
