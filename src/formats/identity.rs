//! Ids that a format insists on and the upstream did not give, made so that a retry makes the same ones.

use sha2::{Digest as _, Sha256};

const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// The id of the call that is number `ordinal` of its choice; the same in a stream and in a whole reply.
pub(in crate::formats) fn call_id(response_id: &str, choice: u32, ordinal: u32) -> String {
    let hash = Sha256::digest(format!("{response_id}\u{1f}{choice}\u{1f}{ordinal}"));
    let mut id = String::from("call_");
    // Five bytes are eight letters; fifteen bytes give the 24 letters wanted.
    for group in hash[..15].chunks(5) {
        let bits = group
            .iter()
            .fold(0u64, |bits, byte| bits << 8 | u64::from(*byte));
        for letter in (0..8).rev() {
            let five = usize::try_from(bits >> (5 * letter) & 31).expect("five bits fit");
            id.push(char::from(BASE32[five]));
        }
    }
    id
}

#[cfg(test)]
mod tests {
    use super::call_id;

    #[test]
    fn call_ids_are_stable_and_tell_calls_apart() {
        // python: base64.b32encode(hashlib.sha256(b"resp-1\x1f0\x1f0").digest())[:24].lower()
        assert_eq!(call_id("resp-1", 0, 0), "call_x47u5vx2lix72rx5v3szccwc");
        assert_ne!(call_id("resp-1", 0, 0), call_id("resp-1", 0, 1));
        assert_ne!(call_id("resp-1", 0, 1), call_id("resp-1", 1, 0));
    }
}
