//! Vectors as upstreams and clients write them: arrays of numbers, or base64 of little-endian 32-bit floats.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::json::{DecodeResult, FromJson, JsonReader, RawJson, decode_json};
use crate::model::ApiError;

const BYTES_PER_FLOAT: usize = size_of::<f32>();

/// The numbers of an array, all finite.
#[derive(Default)]
struct FloatArray(Vec<f32>);

impl<'a> FromJson<'a> for FloatArray {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.array(|reader| {
            let number = reader.number()?.parse::<f32>();
            match number.ok().filter(|number| number.is_finite()) {
                Some(number) => self.0.push(number),
                None => return Err(reader.stop("a number within range")),
            }
            Ok(())
        })
    }
}

/// Decodes a vector of either form.
pub(super) fn decode_vector(raw: RawJson<'_>) -> Result<Vec<f32>, ApiError> {
    let floats = match raw.text() {
        Some(text) => decode_floats(&text),
        None => decode_json::<FloatArray>(raw.get())
            .ok()
            .map(|array| array.0),
    };
    match floats.filter(|floats| !floats.is_empty()) {
        Some(floats) => Ok(floats),
        None => Err(broken("a vector that is not of finite numbers")),
    }
}

fn decode_floats(text: &str) -> Option<Vec<f32>> {
    let bytes = STANDARD.decode(text).ok()?;
    let (floats, rest) = bytes.as_chunks::<BYTES_PER_FLOAT>();
    let floats: Vec<f32> = floats.iter().copied().map(f32::from_le_bytes).collect();
    (rest.is_empty() && floats.iter().all(|float| float.is_finite())).then_some(floats)
}

/// Returns the length of a vector that passes through, which need not be of floats.
pub(super) fn length_of_any(raw: RawJson<'_>) -> Result<usize, ApiError> {
    let length = match raw.text() {
        Some(text) => STANDARD.decode(&*text).map_or(0, |bytes| bytes.len()),
        None => decode_json::<FloatArray>(raw.get()).map_or(0, |array| array.0.len()),
    };
    match length {
        0 => Err(broken("a vector that is neither numbers nor base64")),
        length => Ok(length),
    }
}

/// Encodes a vector in base64.
pub(super) fn encode_floats(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector
        .iter()
        .flat_map(|float| float.to_le_bytes())
        .collect();
    STANDARD.encode(bytes)
}

/// Checks that all vectors of a response have one length.
pub(super) fn check_lengths(lengths: impl IntoIterator<Item = usize>) -> Result<(), ApiError> {
    let mut lengths = lengths.into_iter();
    let first = lengths.next();
    match lengths.find(|length| Some(*length) != first) {
        None => Ok(()),
        Some(_) => Err(broken("vectors of several lengths")),
    }
}

/// The error for a response that no client could use.
pub(super) fn broken(what: &str) -> ApiError {
    ApiError::bad_gateway(format!("the upstream's response has {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(text: &str) -> Option<Vec<f32>> {
        let raw: RawJson<'_> = decode_json(text).expect(text);
        decode_vector(raw).ok()
    }

    #[test]
    fn both_forms_of_a_vector_are_decoded_and_nothing_else() {
        let vector = vec![0.5, -1.25, 3e-9];
        let base64 = encode_floats(&vector);
        assert_eq!(base64, "AAAAPwAAoL+PKE4x");
        assert_eq!(decoded(&format!("{base64:?}")), Some(vector.clone()));
        assert_eq!(decoded("[0.5, -1.25 ,3e-9]"), Some(vector));
        let not_finite = [f32::NAN, f32::INFINITY].map(|float| encode_floats(&[float]));
        for bad in [
            "[]",
            "[1e39]",
            "[null]",
            r#"["1"]"#,
            "3",
            "{}",
            "null",
            r#""""#,
            r#""AAAA""#,
            r#""not base64""#,
            &format!("{:?}", not_finite[0]),
            &format!("{:?}", not_finite[1]),
        ] {
            assert_eq!(decoded(bad), None, "{bad}");
        }
    }

    #[test]
    fn vectors_of_bytes_pass_through() {
        let raw: RawJson<'_> = decode_json(r#""AAAA""#).expect("text");
        assert_eq!(length_of_any(raw), Ok(3));
        assert!(check_lengths([3, 3, 3]).is_ok());
        assert!(check_lengths([3, 4]).is_err());
    }
}
