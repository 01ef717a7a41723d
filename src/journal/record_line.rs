//! Encodes and decodes a usage record as one line: a CRC-32 in hex, a blank, and JSON.

use std::borrow::Cow;

use serde::Serialize;

use crate::json::{decode_json, escape, from_json};
use crate::model::{MAX_AMOUNT_LEN, Money, Usage, UsageDetails, UsageRecord};

/// Length of the checksum in hex digits, with the blank.
const HEAD: usize = 9;
const DIGITS: &[u8; 16] = b"0123456789abcdef";

from_json! {
    /// A decoded line; counts of zero are left out on the wire.
    struct RecordLine<'a> {
        "id" required => id: Cow<'a, str>,
        "at" required => at: i64,
        "key" required => key: Cow<'a, str>,
        "key_id" => key_id: Cow<'a, str>,
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
        /// A decimal string: JSON numbers are read as floats by many programs.
        "cost" required => cost: Cow<'a, str>,
        "prices" => prices: Cow<'a, str>,
        "priced_ms" => priced: u64,
        "audio_ms" => audio: u64,
        "took_ms" => took: u64,
        "first_ms" => first_byte: u64,
        "upstream_format" => upstream_format: Cow<'a, str>,
        "earlier" => earlier: Cow<'a, str>,
        "dropped" => dropped: Cow<'a, str>,
        "adjusted" => adjusted: Cow<'a, str>,
    }
}

impl<'a> RecordLine<'a> {
    fn record(self) -> Option<UsageRecord<'a>> {
        Some(UsageRecord {
            cost: Money::from_decimal(&self.cost)?,
            id: self.id,
            at: self.at,
            key_id: self.key_id,
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
                ..Usage::default()
            },
            images: self.images,
            estimated: self.estimated,
            details: UsageDetails {
                prices: self.prices,
                priced: self.priced,
                audio: self.audio,
                took: self.took,
                first_byte: self.first_byte,
                upstream_format: self.upstream_format,
                earlier: self.earlier,
                dropped: self.dropped,
                adjusted: self.adjusted,
            },
        })
    }
}

/// Encodes a record into `out`, replacing its content; the line feed is included.
pub(super) fn encode(record: &UsageRecord<'_>, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&[b' '; HEAD]);
    encode_json(record, out);
    let sum = crc32fast::hash(&out[HEAD..]);
    for (place, digit) in out[..HEAD - 1].iter_mut().zip(0..) {
        *place = DIGITS[(sum >> (28 - 4 * digit)) as usize & 0xf];
    }
    out.push(b'\n');
}

/// Writes the JSON by hand: the client's last byte waits for it, and a serializer would check every
/// field name for escapes.
fn encode_json(record: &UsageRecord<'_>, out: &mut Vec<u8>) {
    for (name, text) in [
        (r#"{"id":""#, &*record.id),
        (r#"","key":""#, &record.key),
        (r#"","key_id":""#, &record.key_id),
        (r#"","model":""#, &record.model),
        (r#"","upstream":""#, &record.upstream),
        (r#"","format":""#, &record.format),
    ] {
        out.extend_from_slice(name.as_bytes());
        escape(text, out);
    }
    out.extend_from_slice(br#"","at":"#);
    encode_value(&record.at, out);
    out.extend_from_slice(br#","status":"#);
    encode_value(&record.status, out);
    let usage = &record.usage;
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
        (r#","images":"#, record.images),
        (r#","priced_ms":"#, record.details.priced),
        (r#","audio_ms":"#, record.details.audio),
        (r#","took_ms":"#, record.details.took),
        (r#","first_ms":"#, record.details.first_byte),
    ] {
        if count > 0 {
            out.extend_from_slice(name.as_bytes());
            encode_value(&count, out);
        }
    }
    encode_details(&record.details, out);
    let last = match (record.stream, record.estimated) {
        (false, false) => r#","stream":false,"estimated":false,"cost":""#,
        (false, true) => r#","stream":false,"estimated":true,"cost":""#,
        (true, false) => r#","stream":true,"estimated":false,"cost":""#,
        (true, true) => r#","stream":true,"estimated":true,"cost":""#,
    };
    out.extend_from_slice(last.as_bytes());
    out.extend_from_slice(record.cost.format_into(&mut [0; MAX_AMOUNT_LEN]));
    out.extend_from_slice(br#""}"#);
}

fn encode_details(details: &UsageDetails<'_>, out: &mut Vec<u8>) {
    for (name, text) in [
        (r#","prices":""#, &details.prices),
        (r#","upstream_format":""#, &details.upstream_format),
        (r#","earlier":""#, &details.earlier),
        (r#","dropped":""#, &details.dropped),
        (r#","adjusted":""#, &details.adjusted),
    ] {
        if !text.is_empty() {
            out.extend_from_slice(name.as_bytes());
            escape(text, out);
            out.push(b'"');
        }
    }
}

fn encode_value(value: &impl Serialize, out: &mut Vec<u8>) {
    serde_json::to_writer(out, value).expect("plain values serialise");
}

/// Decodes a line without its line feed. `None`: the checksum or the JSON is wrong.
pub(super) fn decode(line: &[u8]) -> Option<UsageRecord<'_>> {
    let (head, json) = line.split_at_checked(HEAD)?;
    let digits = str::from_utf8(head).ok()?.strip_suffix(' ')?;
    let sum = u32::from_str_radix(digits, 16).ok()?;
    if sum != crc32fast::hash(json) {
        return None;
    }
    let line: RecordLine<'_> = decode_json(str::from_utf8(json).ok()?).ok()?;
    line.record()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_a_receipt_to_the_last_digit() {
        let record = UsageRecord {
            id: "req_1".into(),
            at: 1_760_000_000_123,
            key_id: "id\"1".into(),
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
                ..Usage::default()
            },
            images: 8,
            estimated: true,
            cost: Money::from_decimal("18446744073709551596553.255926290448385")
                .expect("an amount"),
            details: UsageDetails {
                prices: "input=1 output=2".into(),
                priced: 10,
                audio: 11,
                took: 12,
                first_byte: 13,
                upstream_format: "messages".into(),
                earlier: r#"[{"upstream":"a","error":"overloaded","ms":5}]"#.into(),
                dropped: "seed, a\"b".into(),
                adjusted: "top_k".into(),
            },
        };
        let mut line = b"what was there".to_vec();
        encode(&record, &mut line);
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        let without_end = line.strip_suffix(b"\n").expect("an end");
        assert_eq!(decode(without_end), Some(record));
    }

    #[test]
    fn no_damage_goes_unseen() {
        let mut line = Vec::new();
        encode(&super::super::tests::record("req_1"), &mut line);
        line.pop();
        assert!(decode(&line).is_some());
        for at in 0..line.len() {
            let mut damaged = line.clone();
            damaged[at] ^= 1;
            assert_eq!(decode(&damaged), None, "byte {at}");
            assert_eq!(decode(&line[..at]), None, "cut at {at}");
            assert_eq!(decode(&line[at + 1..]), None, "begun at {at}");
        }
    }
}
