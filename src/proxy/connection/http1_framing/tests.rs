//! What pingora reads of a header, and when.

use super::*;

const HEADER: &str = "POST / HTTP/1.1\r\nhost: x\r\na: b\r\n\r\n";

/// Reads bytes as they come, in pieces of a length; returns each piece that is read of them.
fn read(framing: &mut Http1Framing, sent: &[u8], length: usize) -> Vec<Vec<u8>> {
    let mut read = Vec::new();
    for piece in sent.chunks(length) {
        match framing.note(piece) {
            ReadOutcome::Pass => read.push(piece.to_vec()),
            ReadOutcome::Hold => {}
            ReadOutcome::Release => {
                let mut memory = [0; 5000];
                let mut buf = ReadBuf::new(&mut memory);
                while framing.read_held(&mut buf) {
                    read.push(buf.filled().to_vec());
                    buf.clear();
                }
            }
            ReadOutcome::InvalidChunk => panic!("no chunk was invalid"),
        }
    }
    read
}

#[test]
fn a_header_that_comes_byte_by_byte_is_read_when_it_is_complete() {
    for length in [1, 2, 3, 5, 16, HEADER.len() - 1] {
        let mut framing = Http1Framing::default();
        let pieces = read(&mut framing, HEADER.as_bytes(), length);
        assert_eq!(pieces.concat(), HEADER.as_bytes(), "{length}");
        assert!(pieces.len() <= MAX_END + 1, "{length}: {pieces:?}");
    }
}

#[test]
fn what_comes_in_one_read_is_not_held() {
    let mut framing = Http1Framing::default();
    let both = format!("{HEADER}{{}}");
    assert_eq!(framing.note(both.as_bytes()), ReadOutcome::Pass);
    framing.end_header();
    let checked = framing.set_body(HEADER.len(), BodyFraming::Length(4));
    assert_eq!(checked, FramingCheck::Valid);
    assert_eq!(framing.note(b"{}"), ReadOutcome::Pass);
    framing.begin_header();
    assert!(framing.held.capacity() == 0 && framing.is_exact);
}

/// pingora keeps what came behind a request, and begins the next header with that.
#[test]
fn the_end_of_a_header_that_was_sent_ahead_is_not_held() {
    for ahead in 1..HEADER.len() {
        for length in 1..=HEADER.len() - ahead {
            let mut framing = Http1Framing::default();
            let both = [HEADER, &HEADER[..ahead]].concat();
            assert_eq!(framing.note(both.as_bytes()), ReadOutcome::Pass);
            framing.end_header();
            framing.set_body(HEADER.len(), BodyFraming::Length(0));
            framing.begin_header();
            assert!(!framing.is_exact, "{ahead}");
            let rest = &HEADER.as_bytes()[ahead..];
            let pieces = read(&mut framing, rest, length);
            assert_eq!(pieces.concat(), rest, "{ahead} {length}");
            assert!(pieces.len() <= MAX_END + 1, "{ahead} {length}: {pieces:?}");
        }
    }
}

#[test]
fn no_more_is_kept_of_a_header_than_it_may_have() {
    let value = "a".repeat(MAX_READ);
    for (begin, cut) in [
        ("GET / HTTP/1.1\r\nhost: x\r\nx: ", "\r\n\r\n"),
        ("GET /", " HTTP/1.1\r\n\r\n"),
    ] {
        for end in ["", "\r\n\r\n"] {
            let mut framing = Http1Framing::default();
            // Without an end it is cut at the last byte that is read.
            let length = if end.is_empty() { MAX_READ } else { 300_000 };
            let sent = [begin, &value[..length - begin.len()], end].concat();
            let pieces = read(&mut framing, sent.as_bytes(), 4096).concat();
            let text = String::from_utf8(pieces).expect("text");
            assert!(text.starts_with(begin) && text.ends_with(cut), "{begin}");
            assert!(text.len() <= MAX_KEPT + cut.len(), "{}", text.len());
            let checked = framing.set_body(text.len(), BodyFraming::Length(0));
            assert_eq!(checked, FramingCheck::HeaderTooLong);
        }
    }
    // The line in which it was cut is left out, if there is one before.
    let mut framing = Http1Framing::default();
    let sent = "GET / HTTP/1.1\r\n";
    assert_eq!(framing.note(sent.as_bytes()), ReadOutcome::Pass);
    let rest = ["a: b\r\nc: ", &value[sent.len() + 9..]].concat();
    let pieces = read(&mut framing, rest.as_bytes(), 4096);
    assert_eq!(pieces.concat(), b"a: b\r\n\r\n");
}

#[test]
fn the_heads_of_chunks_are_checked_where_their_place_is_known() {
    let valid = [HEADER, "1\r\na\r\n0\r\n\r\n"].concat();
    let invalid = [HEADER, "1;\n\r\na\r\n0\r\n\r\n"].concat();
    let mut framing = Http1Framing::default();
    for (sent, length, expected) in [
        (&valid, HEADER.len(), FramingCheck::Valid),
        // pingora has rewritten the target.
        (&valid, HEADER.len() + 2, FramingCheck::Unknown),
        (&invalid, HEADER.len(), FramingCheck::Unknown),
    ] {
        assert_eq!(framing.note(sent.as_bytes()), ReadOutcome::Pass);
        framing.end_header();
        assert_eq!(framing.set_body(length, BodyFraming::Chunks), expected);
        assert!(!framing.has_invalid_chunk());
        framing.begin_header();
    }
    let mut framing = Http1Framing::default();
    assert_eq!(framing.note(invalid.as_bytes()), ReadOutcome::Pass);
    let checked = framing.set_body(HEADER.len(), BodyFraming::Chunks);
    assert_eq!(checked, FramingCheck::InvalidChunk);

    let mut framing = Http1Framing::default();
    assert_eq!(framing.note(HEADER.as_bytes()), ReadOutcome::Pass);
    framing.end_header();
    let checked = framing.set_body(HEADER.len(), BodyFraming::Chunks);
    assert_eq!(checked, FramingCheck::Valid);
    assert_eq!(framing.note(b"1\r\na\r\n"), ReadOutcome::Pass);
    assert_eq!(framing.note(b"\r\n"), ReadOutcome::InvalidChunk);
    assert!(framing.has_invalid_chunk());
}
