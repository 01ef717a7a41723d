//! Finds the first byte of a JSON string that needs an escape: a quote, a backslash or a control character.

/// Shorter strings, which most are, are searched by words of eight bytes.
const SHORT: usize = 64;

/// The number of bytes before the first that needs an escape.
#[inline]
pub fn plain(bytes: &[u8]) -> usize {
    match bytes.split_at_checked(SHORT) {
        None => plain_by_words(bytes),
        Some((first, more)) => match plain_by_words(first) {
            SHORT => SHORT + plain_of_many(more),
            less => less,
        },
    }
}

#[inline]
fn plain_by_words(bytes: &[u8]) -> usize {
    let (words, rest) = bytes.as_chunks();
    for (number, word) in words.iter().enumerate() {
        let special = special(u64::from_le_bytes(*word));
        if special != 0 {
            return number * size_of_val(word) + special.trailing_zeros() as usize / 8;
        }
    }
    let special = rest.iter().position(|byte| !is_plain(*byte));
    bytes.len() - rest.len() + special.unwrap_or(rest.len())
}

#[inline(never)]
fn plain_of_many(bytes: &[u8]) -> usize {
    let (goes, _) = bytes.as_chunks::<64>();
    let before = goes.iter().take_while(|go| are_plain(*go)).count() * 64;
    before + plain_by_words(&bytes[before..])
}

fn are_plain(bytes: &[u8]) -> bool {
    // No early exit: only so the compiler vectorizes the loop.
    bytes.iter().fold(true, |all, byte| all & is_plain(*byte))
}

const fn is_plain(byte: u8) -> bool {
    byte >= b' ' && byte != b'"' && byte != b'\\'
}

/// Sets the high bit of every byte that needs an escape. Bytes above the lowest such one may be set
/// wrongly: only the lowest counts.
#[inline]
const fn special(word: u64) -> u64 {
    const LOW: u64 = u64::MAX / 0xff;
    const HIGH: u64 = LOW << 7;
    let quote = word ^ (LOW * b'"' as u64);
    let backslash = word ^ (LOW * b'\\' as u64);
    let control = word.wrapping_sub(LOW * 0x20);
    (quote.wrapping_sub(LOW) & !quote | backslash.wrapping_sub(LOW) & !backslash | control & !word)
        & HIGH
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{is_plain, plain};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]
        #[test]
        fn it_is_the_first_byte_that_does_not_stand_for_itself(
            length in 0_usize..400,
            specials in prop::collection::vec((0_usize..400, any::<u8>()), 0..4),
        ) {
            let mut bytes = vec![b'a'; length];
            for (at, byte) in specials {
                if let Some(place) = bytes.get_mut(at) {
                    *place = byte;
                }
            }
            let first = bytes.iter().position(|byte| !is_plain(*byte));
            prop_assert_eq!(plain(&bytes), first.unwrap_or(length));
        }
    }
}
