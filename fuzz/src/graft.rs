//! Mutations that know JSON: bytes alone would break most bodies before any decoder has seen a field.

use libfuzzer_sys::fuzzer_mutate;
use serde_json::Value;

use crate::checks::input::CHOOSERS;

/// A generator good enough to roll dice with.
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

const ODD: [&str; 22] = [
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

/// For bodies of one JSON document.
pub fn mutate_json(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    mutate(data, size, most, seed, |body, dice| grafted(body, dice))
}

/// For bodies of many events with a JSON document each.
pub fn mutate_events(data: &mut [u8], size: usize, most: usize, seed: u32) -> usize {
    mutate(data, size, most, seed, |body, dice| {
        let text = str::from_utf8(body).ok()?;
        let mut events: Vec<String> = text.split("\n\n").map(str::to_owned).collect();
        let at = dice.below(events.len());
        match dice.below(6) {
            0 => drop(events.remove(at)),
            1 => {
                let copy = events[at].clone();
                events.insert(dice.below(events.len()), copy);
            }
            _ => {
                let (head, payload) = events[at].split_once("data: ")?;
                let payload = grafted(payload.as_bytes(), dice)?;
                events[at] = format!("{head}data: {}", String::from_utf8(payload).ok()?);
            }
        }
        Some(events.join("\n\n").into_bytes())
    })
}

/// Half of the time the fuzzer's own mutations of bytes, which also reach the choosers.
fn mutate(
    data: &mut [u8],
    size: usize,
    most: usize,
    seed: u32,
    graft: impl FnOnce(&[u8], &mut Dice) -> Option<Vec<u8>>,
) -> usize {
    let mut dice = Dice(u64::from(seed));
    if size > CHOOSERS && dice.below(2) == 0 {
        let body = graft(&data[CHOOSERS..size], &mut dice);
        if let Some(body) = body.filter(|body| CHOOSERS + body.len() <= most) {
            data[CHOOSERS..CHOOSERS + body.len()].copy_from_slice(&body);
            return CHOOSERS + body.len();
        }
    }
    fuzzer_mutate(data, size, most)
}

fn grafted(body: &[u8], dice: &mut Dice) -> Option<Vec<u8>> {
    let mut tree: Value = serde_json::from_slice(body).ok()?;
    for _ in 0..=dice.below(3) {
        let count = nodes(&tree);
        let (from, to) = (dice.below(count), dice.below(count));
        let new = match dice.below(3) {
            0 => node(&mut tree, &mut from.clone())?.clone(),
            _ => serde_json::from_str(ODD[dice.below(ODD.len())]).ok()?,
        };
        let place = node(&mut tree, &mut to.clone())?;
        match (dice.below(4), place) {
            (0, Value::Array(items)) => items.insert(dice.below(items.len() + 1), new),
            (0, Value::Object(fields)) => {
                let key = fields.keys().nth(dice.below(fields.len())).cloned();
                fields.remove(&key?);
            }
            (_, place) => *place = new,
        }
    }
    serde_json::to_vec(&tree).ok()
}

fn nodes(tree: &Value) -> usize {
    1 + match tree {
        Value::Array(items) => items.iter().map(nodes).sum(),
        Value::Object(fields) => fields.values().map(nodes).sum(),
        _ => 0,
    }
}

/// The node number `at`, counted from the root down.
fn node<'t>(tree: &'t mut Value, at: &mut usize) -> Option<&'t mut Value> {
    if *at == 0 {
        return Some(tree);
    }
    *at -= 1;
    match tree {
        Value::Array(items) => items.iter_mut().find_map(|item| node(item, at)),
        Value::Object(fields) => fields.values_mut().find_map(|field| node(field, at)),
        _ => None,
    }
}
