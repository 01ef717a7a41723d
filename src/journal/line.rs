//! A receipt as one line: a checksum, a blank, and JSON.

use std::borrow::Cow;
use std::io::Write as _;

use flate2::Crc;
use serde::{Deserialize, Serialize};

use crate::model::{Money, Receipt, Usage};

/// The checksum in hex digits, and the blank.
const HEAD: usize = 9;

/// Counts of nothing are left out.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    at: i64,
    #[serde(borrow)]
    key: Cow<'a, str>,
    #[serde(borrow)]
    model: Cow<'a, str>,
    #[serde(borrow)]
    upstream: Cow<'a, str>,
    #[serde(borrow)]
    format: Cow<'a, str>,
    stream: bool,
    status: u16,
    #[serde(default, skip_serializing_if = "is_nothing")]
    input: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    cached: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    cache_written: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    output: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    thinking: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    audio_input: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    audio_output: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    image_input: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    image_output: u64,
    #[serde(default, skip_serializing_if = "is_nothing")]
    images: u64,
    estimated: bool,
    /// As text: a number would be read as a float by whoever looks.
    #[serde(borrow)]
    cost: Cow<'a, str>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
const fn is_nothing(count: &u64) -> bool {
    *count == 0
}

impl<'a> From<&'a Receipt> for Line<'a> {
    fn from(receipt: &'a Receipt) -> Line<'a> {
        let usage = receipt.usage;
        Line {
            id: (&*receipt.id).into(),
            at: receipt.at,
            key: (&*receipt.key).into(),
            model: (&*receipt.model).into(),
            upstream: (&*receipt.upstream).into(),
            format: (&*receipt.format).into(),
            stream: receipt.stream,
            status: receipt.status,
            input: usage.input,
            cached: usage.cached,
            cache_written: usage.cache_written,
            output: usage.output,
            thinking: usage.thinking,
            audio_input: usage.audio_input,
            audio_output: usage.audio_output,
            image_input: usage.image_input,
            image_output: usage.image_output,
            images: receipt.images,
            estimated: receipt.estimated,
            cost: receipt.cost.to_string().into(),
        }
    }
}

impl Line<'_> {
    fn receipt(self) -> Option<Receipt> {
        Some(Receipt {
            cost: Money::read(&self.cost)?,
            id: self.id.into_owned(),
            at: self.at,
            key: self.key.into_owned(),
            model: self.model.into_owned(),
            upstream: self.upstream.into_owned(),
            format: self.format.into_owned(),
            stream: self.stream,
            status: self.status,
            usage: Usage {
                input: self.input,
                cached: self.cached,
                cache_written: self.cache_written,
                output: self.output,
                thinking: self.thinking,
                audio_input: self.audio_input,
                audio_output: self.audio_output,
                image_input: self.image_input,
                image_output: self.image_output,
            },
            images: self.images,
            estimated: self.estimated,
        })
    }
}

/// The line with its end, in the place of whatever was there.
pub(super) fn write(receipt: &Receipt, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[b' '; HEAD]);
    serde_json::to_writer(&mut *out, &Line::from(receipt))
        .expect("a struct of plain fields serialises");
    let sum = checksum(&out[HEAD..]);
    write!(&mut out[..HEAD], "{sum:08x}").expect("there is room for eight digits");
    out.push(b'\n');
}

/// A line without its end. `None`: it is not what was once written.
pub(super) fn read(line: &[u8]) -> Option<Receipt> {
    let (head, json) = line.split_at_checked(HEAD)?;
    let digits = str::from_utf8(head).ok()?.strip_suffix(' ')?;
    let sum = u32::from_str_radix(digits, 16).ok()?;
    if sum != checksum(json) {
        return None;
    }
    serde_json::from_slice::<Line<'_>>(json).ok()?.receipt()
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_a_receipt_to_the_last_digit() {
        let receipt = Receipt {
            id: "req_1".to_owned(),
            at: 1_760_000_000_123,
            key: "a \"key\"\u{2028}".to_owned(),
            model: "m".to_owned(),
            upstream: "up".to_owned(),
            format: "chat".to_owned(),
            stream: true,
            status: 200,
            usage: Usage {
                input: u64::MAX,
                cached: 1,
                cache_written: 2,
                output: 3,
                thinking: 4,
                audio_input: 5,
                audio_output: 6,
                image_input: 9,
                image_output: 7,
            },
            images: 8,
            estimated: true,
            cost: Money::read("18446744073709551596553.255926290448385").expect("an amount"),
        };
        let mut line = b"what was there".to_vec();
        write(&receipt, &mut line);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let without_end = line.strip_suffix(b"\n").expect("an end");
        assert_eq!(read(without_end), Some(receipt));
    }

    #[test]
    fn no_damage_goes_unseen() {
        let mut line = Vec::new();
        write(&super::super::tests::receipt("req_1"), &mut line);
        line.pop();
        assert!(read(&line).is_some());
        for at in 0..line.len() {
            let mut damaged = line.clone();
            damaged[at] ^= 1;
            assert_eq!(read(&damaged), None, "byte {at}");
            assert_eq!(read(&line[..at]), None, "cut at {at}");
            assert_eq!(read(&line[at + 1..]), None, "begun at {at}");
        }
    }
}
