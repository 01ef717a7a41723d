//! The header of an image file: type, size and opacity, without decoding the image.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;

/// The type of an image file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageFileType {
    Png,
    Jpeg,
    Webp,
    Gif,
}

impl ImageFileType {
    pub(super) const fn mime(self) -> &'static str {
        match self {
            ImageFileType::Png => "image/png",
            ImageFileType::Jpeg => "image/jpeg",
            ImageFileType::Webp => "image/webp",
            ImageFileType::Gif => "image/gif",
        }
    }

    /// The value of `output_format`.
    pub(super) const fn output_format(self) -> &'static str {
        match self {
            ImageFileType::Png => "png",
            ImageFileType::Jpeg => "jpeg",
            ImageFileType::Webp => "webp",
            ImageFileType::Gif => "gif",
        }
    }
}

/// What the first bytes of an image file say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ImageHeader {
    pub(super) file_type: ImageFileType,
    /// Width and height; `None` if they stand beyond the bytes that are read.
    pub(super) size: Option<(u32, u32)>,
    /// The image has no transparency.
    pub(super) opaque: bool,
}

/// How many bytes of a base64 file are read.
const MAX_HEADER_BYTES: usize = 64 << 10;

/// Decodes the header of a file that is given as base64.
pub(super) fn decode_base64_header(text: &str) -> Option<ImageHeader> {
    let end = text.len().min(MAX_HEADER_BYTES / 3 * 4);
    let head = text.as_bytes().get(..end - end % 4)?;
    let padding = head.iter().rev().take_while(|byte| **byte == b'=').count();
    let bytes = STANDARD_NO_PAD.decode(&head[..head.len() - padding]).ok()?;
    decode_header(&bytes)
}

/// Decodes the header of a file; `None` if it is no image.
pub(super) fn decode_header(bytes: &[u8]) -> Option<ImageHeader> {
    let header = |file_type, size, opaque| {
        Some(ImageHeader {
            file_type,
            size,
            opaque,
        })
    };
    if bytes.starts_with(b"\x89PNG\r\n\x1a\n") {
        let size = big_endian(bytes, 16).zip(big_endian(bytes, 20));
        // Colour types 0 and 2 have no alpha channel; a palette (3) may have transparent entries.
        let opaque = matches!(bytes.get(25), Some(0 | 2));
        return header(ImageFileType::Png, size, opaque);
    }
    if bytes.starts_with(b"\xff\xd8\xff") {
        return header(ImageFileType::Jpeg, jpeg_size(bytes), true);
    }
    if bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a") {
        let side = |at: usize| little_endian(bytes, at, 2);
        return header(ImageFileType::Gif, side(6).zip(side(8)), false);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return header(
            ImageFileType::Webp,
            webp_size(bytes),
            bytes.get(12..16) == Some(b"VP8 "),
        );
    }
    None
}

/// The media type of a file by its first bytes; `None` if it is no image.
pub fn image_media_type(bytes: &[u8]) -> Option<&'static str> {
    decode_header(bytes).map(|header| header.file_type.mime())
}

fn big_endian(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at + 4)?;
    Some(
        four.iter()
            .fold(0, |number, byte| number << 8 | u32::from(*byte)),
    )
}

fn little_endian(bytes: &[u8], at: usize, length: usize) -> Option<u32> {
    let some = bytes.get(at..at + length)?.iter().rev();
    Some(some.fold(0, |number, byte| number << 8 | u32::from(*byte)))
}

/// Walks the segments of a JPEG to the one that starts a frame.
fn jpeg_size(bytes: &[u8]) -> Option<(u32, u32)> {
    let mut at = 2;
    loop {
        let [0xff, marker, high, low] = *bytes.get(at..at + 4)? else {
            return None;
        };
        if matches!(marker, 0xc0..=0xcf) && !matches!(marker, 0xc4 | 0xc8 | 0xcc) {
            let sides = big_endian(bytes, at + 5)?;
            return Some((sides & 0xffff, sides >> 16));
        }
        at += 2 + usize::from(u16::from_be_bytes([high, low]).max(2));
    }
}

fn webp_size(bytes: &[u8]) -> Option<(u32, u32)> {
    match bytes.get(12..16)? {
        b"VP8 " => Some((
            little_endian(bytes, 26, 2)? & 0x3fff,
            little_endian(bytes, 28, 2)? & 0x3fff,
        )),
        b"VP8L" => {
            let bits = little_endian(bytes, 21, 4)?;
            Some(((bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1))
        }
        b"VP8X" => Some((
            little_endian(bytes, 24, 3)? + 1,
            little_endian(bytes, 27, 3)? + 1,
        )),
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
    fn every_file_type_has_its_size() {
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x0b\x08\x02\x58\x03\x20\x01";
        let gif = b"GIF89a\x20\x03\x58\x02";
        let mut lossy = b"RIFF....WEBPVP8 ....\0\0\0\x9d\x01\x2a".to_vec();
        lossy.extend(b"\x20\x03\x58\x02");
        let mut extended = b"RIFF....WEBPVP8X....\0\0\0\0".to_vec();
        extended.extend([0x1f, 3, 0, 0x57, 2, 0]);
        let mut lossless = b"RIFF....WEBPVP8L....\x2f".to_vec();
        lossless.extend((799u32 | 599 << 14).to_le_bytes());
        let size = Some((800, 600));
        for (bytes, file_type, opaque) in [
            (&png(800, 600, 2)[..], ImageFileType::Png, true),
            (&png(800, 600, 6), ImageFileType::Png, false),
            (jpeg, ImageFileType::Jpeg, true),
            (gif, ImageFileType::Gif, false),
            (&lossy, ImageFileType::Webp, true),
            (&extended, ImageFileType::Webp, false),
            (&lossless, ImageFileType::Webp, false),
        ] {
            let expected = Some(ImageHeader {
                file_type,
                size,
                opaque,
            });
            assert_eq!(decode_header(bytes), expected, "{file_type:?}");
            let text = base64::engine::general_purpose::STANDARD.encode(bytes);
            assert_eq!(decode_base64_header(&text), expected, "{file_type:?}");
        }
    }

    #[test]
    fn truncated_and_foreign_files_are_no_images() {
        for none in [
            &b""[..],
            b"%PDF-1.7",
            b"<svg>",
            b"\xff\xd8",
            b"RIFF....WAVE",
            b"BM....",
        ] {
            assert_eq!(decode_header(none), None);
        }
        for text in ["", "!!!!", "a", "aGVsbG8="] {
            assert_eq!(decode_base64_header(text), None);
        }
        let jpeg = b"\xff\xd8\xff\xe0\x00\x04ab\xff\xc2\x00\x0b\x08\x02\x58\x03\x20\x01";
        for end in 3..jpeg.len() {
            let header = decode_header(&jpeg[..end]).expect("its type");
            assert_eq!(header.size, (end > 16).then_some((800, 600)), "{end}");
        }
        let endless = b"\xff\xd8\xff\xe0\x00\x00\xff\xe0\x00\x00\xff";
        assert_eq!(decode_header(endless).map(|header| header.size), Some(None));
    }
}
