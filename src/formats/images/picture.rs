//! What the first bytes of a file say of the image in it; nothing is decoded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Png,
    Jpeg,
    Webp,
    Gif,
}

impl Kind {
    pub(super) const fn mime(self) -> &'static str {
        match self {
            Kind::Png => "image/png",
            Kind::Jpeg => "image/jpeg",
            Kind::Webp => "image/webp",
            Kind::Gif => "image/gif",
        }
    }

    /// As the format calls it.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Kind::Png => "png",
            Kind::Jpeg => "jpeg",
            Kind::Webp => "webp",
            Kind::Gif => "gif",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    pub(super) kind: Kind,
    /// Width and height, where they are said early enough.
    pub(super) size: Option<(u32, u32)>,
    /// It cannot be seen through anywhere.
    pub(super) opaque: bool,
}

/// Whoever writes more than this in front of an image's size goes unmeasured.
const LOOKED_AT: usize = 64 << 10;

/// Of a file as base64.
pub(super) fn see_base64(text: &str) -> Option<Seen> {
    let end = text.len().min(LOOKED_AT / 3 * 4);
    let head = text.as_bytes().get(..end - end % 4)?;
    let padding = head.iter().rev().take_while(|byte| **byte == b'=').count();
    let bytes = STANDARD_NO_PAD.decode(&head[..head.len() - padding]).ok()?;
    see(&bytes)
}

pub(super) fn see(bytes: &[u8]) -> Option<Seen> {
    let seen = |kind, size, opaque| Some(Seen { kind, size, opaque });
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        let size = big(bytes, 16).zip(big(bytes, 20));
        // The kinds of colour with a channel for it; a palette may have one too.
        let opaque = matches!(bytes.get(25), Some(0 | 2));
        return seen(Kind::Png, size, opaque);
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return seen(Kind::Jpeg, jpeg_size(bytes), true);
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        let side = |at: usize| little(bytes, at, 2);
        return seen(Kind::Gif, side(6).zip(side(8)), false);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return seen(
            Kind::Webp,
            webp_size(bytes),
            bytes.get(12..16) == Some(b"VP8 "),
        );
    }
    None
}

/// The type of a file, by its first bytes; `None`: it is no image.
pub fn picture_type(bytes: &[u8]) -> Option<&'static str> {
    see(bytes).map(|seen| seen.kind.mime())
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(
        four.iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

fn little(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let some = bytes.get(at..at + length)?.iter().rev();
    Some(some.fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// From segment to segment, to the one that begins a frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker, high, low] = *bytes.get(at..at + 4)? else {
            return None;
        };
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            let sides = big(bytes, at + 5)?;
            return Some((sides & 0xffff, sides >> 16));
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]).max(2));
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((
            little(bytes, 26, 2)? & 0x3fff,
            little(bytes, 28, 2)? & 0x3fff,
        )),
        b"VP8L" => {
            let bits = little(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((little(bytes, 24, 3)? + 1, little(bytes, 27, 3)? + 1)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png(width: u32, height: u32, colour: u8) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes.extend([8, colour, 0, 0, 0]);
        bytes
    }

    #[test]
    fn every_kind_tells_its_size() {
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x0b\x08\x02\x58\x03\x20\x01";
        let gif = b"GIF89a\x20\x03\x58\x02";
        let mut lossy = b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a".to_vec();
        lossy.extend(b"\x20\x03\x58\x02");
        let mut extended = b"RIFF....WEBPVP8X....\0\0\0\0".to_vec();
        extended.extend([0x1f, 3, 0, 0x57, 2, 0]);
        let mut lossless = b"RIFF....WEBPVP8L....\x2f".to_vec();
        lossless.extend((799u32 | 599 << 14).to_le_bytes());
        let size = Some((800, 600));
        for (bytes, kind, opaque) in [
            (&png(800, 600, 2)[..], Kind::Png, true),
            (&png(800, 600, 6), Kind::Png, false),
            (jpeg, Kind::Jpeg, true),
            (gif, Kind::Gif, false),
            (&lossy, Kind::Webp, true),
            (&extended, Kind::Webp, false),
            (&lossless, Kind::Webp, false),
        ] {
            let expected = Some(Seen { kind, size, opaque });
            assert_eq!(see(bytes), expected, "{kind:?}");
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            assert_eq!(see_base64(&text), expected, "{kind:?}");
        }
    }

    #[test]
    fn what_is_cut_off_or_no_picture_is_not_taken_for_one() {
        for none in [
            &b""[..],
            b"%PDF-1.7",
            b"<svg>",
            b"\xff\xd8",
            b"RIFF....WAVE",
            b"BM....",
        ] {
            assert_eq!(see(none), None);
        }
        for text in ["", "!!!!", "a", "aGVsbG8="] {
            assert_eq!(see_base64(text), None);
        }
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x0b\x08\x02\x58\x03\x20\x01";
        for end in 3..jpeg.len() {
            let seen = see(&jpeg[..end]).expect("its kind");
            assert_eq!(seen.size, (end > 16).then_some((800, 600)), "{end}");
        }
        let endless = b"\xff\xd8\xff\xe0\x00\x00\xff\xe0\x00\x00\xff";
        assert_eq!(see(endless).map(|seen| seen.size), Some(None));
    }
}
