//! Claims signed with RS256, as service accounts prove who they are.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use serde_json::{Value, json};

/// Signs claims with a private key in PEM.
pub(super) fn sign(pem: &str, key_id: Option<&str>, claims: &Value) -> Result<String, String> {
    let key = private_key(pem)?;
    let mut header = json!({"alg": "RS256", "typ": "JWT"});
    if let Some(key_id) = key_id {
        header["kid"] = key_id.into();
    }
    let encode = |part: &Value| URL_SAFE_NO_PAD.encode(part.to_string());
    let signed = format!("{}.{}", encode(&header), encode(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        signed.as_bytes(),
        &mut signature,
    )
    .map_err(|_| "the private key cannot sign".to_owned())?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

/// A key of PKCS#8, or the older form of RSA keys alone.
fn private_key(pem: &str) -> Result<KeyPair, String> {
    let unreadable = || "private_key is no RSA key in PEM".to_owned();
    let is_pkcs8 = pem.contains("BEGIN PRIVATE KEY");
    let lines = pem.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with("-----"));
    let der = STANDARD.decode(lines.collect::<String>());
    let der = der.map_err(|_| unreadable())?;
    let key = match is_pkcs8 {
        true => KeyPair::from_pkcs8(&der),
        false => KeyPair::from_der(&der),
    };
    key.map_err(|_| unreadable())
}
