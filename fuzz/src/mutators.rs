//! Mutates JSON by its structure: mutations of bytes make most bodies invalid before a decoder reads a field.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::Value;

use crate::checks::input::HEADER_LENGTH;

/// A linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

const UNUSUAL_VALUES: [&str; 22] = [
    "null",
    "true",
    "0",
    "-1",
    "7",
    "18446744073709551615",
    "9223372036854775808",
    "1e300",
    "0.5",
    "\"\"",
    "\"text\"",
    "\"é😀\\n\\\"\"",
    "\"{\\\"a\\\":1}\"",
    "\"{\\\"a\\\":\"",
    "[]",
    "{}",
    "[null]",
    "[{}]",
    "{\"type\":\"x\"}",
    "[{\"type\":\"text\",\"text\":\"t\"}]",
    "\"data:image/png;base64,AAAA\"",
    "\"https://a.example/b.png\"",
];

/// Mutates a body of one JSON document.
pub fn mutate_json(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    mutate(data, size, max_size, seed, |body, random| {
        mutate_document(body, random)
    })
}

/// Mutates a body of events with a JSON document each.
pub fn mutate_events(data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
    mutate(data, size, max_size, seed, |body, random| {
        let text = str::from_utf8(body).ok()?;
        let mut events: Vec<String> = text.split("\n\n").map(str::to_owned).collect();
        let at = random.below(events.len());
        match random.below(6) {
            0 => drop(events.remove(at)),
            1 => {
                let copy = events[at].clone();
                events.insert(random.below(events.len()), copy);
            }
            _ => {
                let (head, payload) = events[at].split_once("data: ")?;
                let payload = mutate_document(payload.as_bytes(), random)?;
                events[at] = format!("{head}data: {}", String::from_utf8(payload).ok()?);
            }
        }
        Some(events.join("\n\n").into_bytes())
    })
}

/// Mutates the structure of the body or, half of the time, bytes of the whole input as the fuzzer does by default.
fn mutate(
    data: &mut [u8],
    size: usize,
    max_size: usize,
    seed: u32,
    mutate_body: impl FnOnce(&[u8], &mut Random) -> Option<Vec<u8>>,
) -> usize {
    let mut random = Random(u64::from(seed));
    if size > HEADER_LENGTH && random.below(2) == 0 {
        let body = mutate_body(&data[HEADER_LENGTH..size], &mut random);
        if let Some(body) = body.filter(|body| HEADER_LENGTH + body.len() <= max_size) {
            data[HEADER_LENGTH..HEADER_LENGTH + body.len()].copy_from_slice(&body);
            return HEADER_LENGTH + body.len();
        }
    }
    fuzzer_mutate(data, size, max_size)
}

/// Replaces, inserts or removes up to three nodes of a JSON document.
fn mutate_document(body: &[u8], random: &mut Random) -> Option<Vec<u8>> {
    let mut tree: Value = serde_json::from_slice(body).ok()?;
    for _ in 0..=random.below(3) {
        let count = count_nodes(&tree);
        let (from, to) = (random.below(count), random.below(count));
        let new = match random.below(3) {
            0 => nth_node(&mut tree, &mut from.clone())?.clone(),
            _ => serde_json::from_str(UNUSUAL_VALUES[random.below(UNUSUAL_VALUES.len())]).ok()?,
        };
        let target = nth_node(&mut tree, &mut to.clone())?;
        match (random.below(4), target) {
            (0, Value::Array(items)) => items.insert(random.below(items.len() + 1), new),
            (0, Value::Object(fields)) => {
                let key = fields.keys().nth(random.below(fields.len())).cloned();
                fields.remove(&key?);
            }
            (_, target) => *target = new,
        }
    }
    serde_json::to_vec(&tree).ok()
}

fn count_nodes(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(count_nodes).sum(),
        Value::Object(fields) => fields.values().map(count_nodes).sum(),
        _ => 0,
    }
}

/// Returns the node with index `at`, in depth-first order.
fn nth_node<'t>(tree: &'t mut Value, at: &mut usize) -> Option<&'t mut Value> {
    if *at == 0 {
        return Some(tree);
    }
    *at -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().find_map(|item| nth_node(item, at)),
        Value::Object(fields) => fields.values_mut().find_map(|field| nth_node(field, at)),
        _ => None,
    }
}
