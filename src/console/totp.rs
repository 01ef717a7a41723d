//! Codes of a second factor, as RFC 6238 has them: SHA-1, six digits, a new one every 30 seconds.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use qrcode::QrCode;
use qrcode::render::svg;
use rand::Rng as _;
use sha2::{Digest as _, Sha256};
use totp_rs::{Builder, Secret, Totp};

/// As many as RFC 4226 recommends.
const SECRET_BYTES: usize = 20;

/// How many codes there are for who has lost the device.
const RECOVERY_CODES: usize = 10;
const RECOVERY_BYTES: usize = 10;
/// Letters and digits that are not mistaken for each other.
const RECOVERY_LETTERS: &[u8; 32] = b"abcdefghjkmnpqrstuvwxyz023456789";

/// A new secret, in base 32.
pub fn new_secret() -> String {
    let mut bytes = [0; SECRET_BYTES];
    rand::rng().fill_bytes(&mut bytes);
    Secret::from(bytes).to_base32()
}

/// The step of a code that is valid at a time in seconds, give or take one step; `None`: it is not valid.
pub fn step_of(secret: &str, code: &str, time: u64) -> Option<i64> {
    let code: String = code
        .chars()
        .filter(|letter| !letter.is_whitespace())
        .collect();
    let step = totp(secret)?.check(&code, time)?;
    i64::try_from(step).ok()
}

fn totp(secret: &str) -> Option<Totp> {
    let secret = Secret::try_from_base32(secret).ok()?;
    Builder::new().with_secret(secret).build().ok()
}

/// What apps read from a picture: `otpauth://totp/Omniglot:ada?...`.
pub fn app_url(secret: &str, handle: &str, host: &str) -> String {
    let encode = |text: &str| utf8_percent_encode(text, NON_ALPHANUMERIC).to_string();
    let issuer = encode(&format!("Omniglot {host}"));
    format!(
        "otpauth://totp/{issuer}:{}?secret={secret}&issuer={issuer}&algorithm=SHA1&digits=6&period=30",
        encode(handle)
    )
}

/// A picture of the URL for an app's camera, as the source of an image.
pub fn picture(url: &str) -> Option<String> {
    let code = QrCode::new(url).ok()?;
    let picture = code.render::<svg::Color<'_>>();
    let svg = { picture }.min_dimensions(220, 220).build();
    Some(format!(
        "data:image/svg+xml;base64,{}",
        STANDARD.encode(svg)
    ))
}

/// Codes for who has lost the device, with 80 bits each.
pub fn new_recovery_codes() -> Vec<String> {
    let code = || {
        let mut bytes = [0_u8; RECOVERY_BYTES + 6];
        rand::rng().fill_bytes(&mut bytes);
        let letters = bytes
            .iter()
            .map(|byte| char::from(RECOVERY_LETTERS[usize::from(byte % 32)]));
        let letters: Vec<char> = letters.collect();
        let parts: Vec<String> = letters
            .chunks(4)
            .map(|part| part.iter().collect())
            .collect();
        parts.join("-")
    };
    (0..RECOVERY_CODES).map(|_| code()).collect()
}

/// The hash of a code as it is typed: case, spaces and hyphens do not matter.
pub fn recovery_hash(code: &str) -> [u8; 32] {
    let letters = code.chars().filter(char::is_ascii_alphanumeric);
    let letters: String = letters.map(|letter| letter.to_ascii_lowercase()).collect();
    Sha256::digest(letters.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The secret of appendix B of RFC 6238, whose codes of eight digits end with these six.
    const RFC_SECRET: &str = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ";

    #[test]
    fn codes_are_those_of_rfc_6238() {
        for (time, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            let step = i64::try_from(time / 30).ok();
            assert_eq!(step_of(RFC_SECRET, code, time), step, "{time}");
            assert_eq!(
                step_of(RFC_SECRET, &format!("{} {}", &code[..3], &code[3..]), time),
                step
            );
            // One step of difference between the clocks is allowed, and two are not.
            assert_eq!(step_of(RFC_SECRET, code, time + 30), step, "{time}");
            assert_eq!(step_of(RFC_SECRET, code, time + 90), None, "{time}");
        }
        for wrong in ["", "28708", "2870820", "abcdef", "287083", "０12345"] {
            assert_eq!(step_of(RFC_SECRET, wrong, 59), None, "{wrong:?}");
        }
        assert_eq!(step_of("not base 32!", "287082", 59), None);
    }

    #[test]
    fn secrets_and_recovery_codes_are_new_every_time() {
        let (one, other) = (new_secret(), new_secret());
        assert_ne!(one, other);
        assert_eq!(one.len(), 32);
        let codes = new_recovery_codes();
        assert_eq!(codes.len(), 10);
        let code = &codes[0];
        assert_eq!(code.len(), 19, "{code}");
        assert_ne!(code, &codes[1]);
        let typed = code.to_uppercase().replace('-', " ");
        assert_eq!(recovery_hash(code), recovery_hash(&typed));
    }

    #[test]
    fn apps_get_a_url_and_a_picture() {
        let url = app_url(RFC_SECRET, "ada", "console.example.com");
        assert!(
            url.starts_with("otpauth://totp/Omniglot%20console%2Eexample%2Ecom:ada?secret=GEZD")
        );
        let picture = picture(&url).expect("a picture");
        assert!(picture.starts_with("data:image/svg+xml;base64,"));
    }
}
