//! Ids that the gateway makes: the same response always gets the same ones, as JSON or as a stream.

use sha2::{Digest as _, Sha256};

/// The prefixes of response ids in all formats.
const RESPONSE_PREFIXES: [&str; 5] = ["chatcmpl-", "msg_", "resp_", "resp-", "gen-"];

const BASE32: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Returns the upstream's id of a response with the prefix of the client's format.
pub(in crate::formats) fn response_id(prefix: &str, upstream: &str) -> String {
    let bare = RESPONSE_PREFIXES
        .iter()
        .find_map(|known| upstream.strip_prefix(known))
        .unwrap_or(upstream);
    [prefix, bare].concat()
}

/// Makes the id of a call that has none; `ordinal` counts the calls of the choice.
pub(crate) fn call_id(response_id: &str, choice: u32, ordinal: u32) -> String {
    hashed_call_id(&format!("{response_id}\x1f{choice}\x1f{ordinal}"))
}

/// Makes the id of a call of an earlier turn that has none, by its turn and its number there.
pub(in crate::formats) fn past_call_id(position: u32, ordinal: u32, name: &str) -> String {
    hashed_call_id(&format!("{position}\x1f{ordinal}\x1f{name}"))
}

/// Makes the id in place of one that the upstream would refuse: the same for a call and its result.
pub(in crate::formats) fn replaced_call_id(id: &str) -> String {
    hashed_call_id(id)
}

fn hashed_call_id(text: &str) -> String {
    let digest = Sha256::digest(text);
    // Fifteen bytes are exactly 24 letters.
    let letters = digest[..15].chunks_exact(5).flat_map(|five| {
        let bits = five
            .iter()
            .fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
        (0..8).map(move |letter| char::from(BASE32[(bits >> (35 - 5 * letter) & 31) as usize]))
    });
    "call_".chars().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_keeps_its_id_with_another_prefix() {
        assert_eq!(response_id("msg_", "chatcmpl-1"), "msg_1");
        assert_eq!(response_id("msg_", "resp_1"), "msg_1");
        assert_eq!(response_id("chatcmpl-", "msg_1"), "chatcmpl-1");
        assert_eq!(response_id("msg_", "Xy9"), "msg_Xy9");
    }

    #[test]
    fn a_call_id_is_the_start_of_a_base32_digest() {
        // printf 'resp-1\x1f0\x1f0' | sha256sum | xxd -r -p | base32
        assert_eq!(call_id("resp-1", 0, 0), "call_x47u5vx2lix72rx5v3szccwc");
        assert_ne!(call_id("resp-1", 0, 0), call_id("resp-1", 0, 1));
        assert_ne!(call_id("resp-1", 0, 0), call_id("resp-1", 1, 0));
        assert_eq!(
            replaced_call_id("resp-1\x1f0\x1f0"),
            call_id("resp-1", 0, 0)
        );
    }
}
