//! A receipt as one line: a checksum, a blank, and JSON.

use std::borrow::Cow;

use serde::Serialize;

use crate::json::{decode_json, escape, from_json};
use crate::model::{MAX_AMOUNT_LEN, Money, Usage, UsageRecord};

/// The checksum in hex digits, and the blank.
const HEAD: usize = 9;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

from_json! {
    /// As it is read; counts of nothing are left out.
    struct Line<'a> {
        "id" required => id: Cow<'a, str>,
        "at" required => at: i64,
        "key" required => key: Cow<'a, str>,
        "model" required => model: Cow<'a, str>,
        "upstream" required => upstream: Cow<'a, str>,
        "format" required => format: Cow<'a, str>,
        "stream" required => stream: bool,
        "status" required => status: u32,
        "input" => input: u64,
        "cached" => cached: u64,
        "cache_written" => cache_written: u64,
        "output" => output: u64,
        "thinking" => thinking: u64,
        "audio_input" => audio_input: u64,
        "audio_output" => audio_output: u64,
        "image_input" => image_input: u64,
        "image_output" => image_output: u64,
        "images" => images: u64,
        "estimated" required => estimated: bool,
        /// As text: a number would be read as a float by whoever looks.
        "cost" required => cost: Cow<'a, str>,
    }
}

impl<'a> Line<'a> {
    fn receipt(self) -> Option<UsageRecord<'a>> {
        Some(UsageRecord {
            cost: Money::from_decimal(&self.cost)?,
            id: self.id,
            at: self.at,
            key: self.key,
            model: self.model,
            upstream: self.upstream,
            format: self.format,
            stream: self.stream,
            status: self.status.try_into().ok()?,
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
pub(super) fn write(receipt: &UsageRecord<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[b' '; HEAD]);
    put(receipt, out);
    let sum = crc32fast::hash(&out[HEAD..]);
    for (place, digit) in out[..HEAD - 1].iter_mut().zip(0..) {
        *place = DIGITS[(sum >> (28 - 4 * digit)) as usize & 0xf];
    }
    out.push(b'\n');
}

/// By hand: a client waits for it, and a serialiser would look through every name of a field for
/// what must be escaped in it.
fn put(receipt: &UsageRecord<'_>, out: &mut Vec<u8>) {
    for (name, text) in [
        (r#"{"id":""#, &*receipt.id),
        (r#"","key":""#, &receipt.key),
        (r#"","model":""#, &receipt.model),
        (r#"","upstream":""#, &receipt.upstream),
        (r#"","format":""#, &receipt.format),
    ] {
        out.extend_from_slice(name.as_bytes());
        escape(text, out);
    }
    out.extend_from_slice(br#"","at":"#);
    put_value(&receipt.at, out);
    out.extend_from_slice(br#","status":"#);
    put_value(&receipt.status, out);
    let usage = &receipt.usage;
    for (name, count) in [
        (r#","input":"#, usage.input),
        (r#","cached":"#, usage.cached),
        (r#","cache_written":"#, usage.cache_written),
        (r#","output":"#, usage.output),
        (r#","thinking":"#, usage.thinking),
        (r#","audio_input":"#, usage.audio_input),
        (r#","audio_output":"#, usage.audio_output),
        (r#","image_input":"#, usage.image_input),
        (r#","image_output":"#, usage.image_output),
        (r#","images":"#, receipt.images),
    ] {
        if count > 0 {
            out.extend_from_slice(name.as_bytes());
            put_value(&count, out);
        }
    }
    let last = match (receipt.stream, receipt.estimated) {
        (false, false) => r#","stream":false,"estimated":false,"cost":""#,
        (false, true) => r#","stream":false,"estimated":true,"cost":""#,
        (true, false) => r#","stream":true,"estimated":false,"cost":""#,
        (true, true) => r#","stream":true,"estimated":true,"cost":""#,
    };
    out.extend_from_slice(last.as_bytes());
    out.extend_from_slice(receipt.cost.format_into(&mut [0; MAX_AMOUNT_LEN]));
    out.extend_from_slice(br#""}"#);
}

fn put_value(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("plain values serialise");
}

/// A line without its end. `None`: it is not what was once written.
pub(super) fn read(line: &[u8]) -> Option<UsageRecord<'_>> {
    let (head, json) = line.split_at_checked(HEAD)?;
    let digits = str::from_utf8(head).ok()?.strip_suffix(' ')?;
    let sum = u32::from_str_radix(digits, 16).ok()?;
    if sum != crc32fast::hash(json) {
        return None;
    }
    let line: Line<'_> = decode_json(str::from_utf8(json).ok()?).ok()?;
    line.receipt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_a_receipt_to_the_last_digit() {
        let receipt = UsageRecord {
            id: "req_1".into(),
            at: 1_760_000_000_123,
            key: "a \"key\"\u{2028}".into(),
            model: "m\\n".into(),
            upstream: "up\n".into(),
            format: "chat".into(),
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
            cost: Money::from_decimal("18446744073709551596553.255926290448385")
                .expect("an amount"),
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
