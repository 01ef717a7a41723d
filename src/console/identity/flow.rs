//! What a browser keeps while its person is at the provider: one random secret, from which all values are made.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::console::tokens::NewToken;

/// The secret of one visit to a provider. At another provider it makes other values, so that no provider's answer is
/// taken for that of another.
#[derive(Debug, Clone)]
pub struct BrowserFlow {
    secret: String,
    provider: String,
}

impl BrowserFlow {
    pub fn generate(provider: &str) -> BrowserFlow {
        BrowserFlow::of(NewToken::generate().token, provider)
    }

    pub fn of(secret: String, provider: &str) -> BrowserFlow {
        let provider = provider.to_owned();
        BrowserFlow { secret, provider }
    }

    /// For the cookie.
    pub fn secret(&self) -> &str {
        &self.secret
    }

    pub fn state(&self) -> String {
        self.derive("state")
    }

    /// Compared in constant time.
    pub fn is_state(&self, state: &str) -> bool {
        let own = self.state();
        own.as_bytes().ct_eq(state.as_bytes()).into()
    }

    /// Ties an ID token to this browser.
    pub fn nonce(&self) -> String {
        self.derive("nonce")
    }

    /// Proves to the provider who has asked for the code.
    pub fn verifier(&self) -> String {
        self.derive("verifier")
    }

    pub fn challenge(&self) -> String {
        encode(&Sha256::digest(self.verifier().as_bytes()))
    }

    fn derive(&self, what: &str) -> String {
        let (provider, secret) = (&self.provider, &self.secret);
        let text = format!("omniglot {what} {provider} {secret}");
        encode(&Sha256::digest(text.as_bytes()))
    }
}

fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_differ_and_none_tells_another() {
        let flow = BrowserFlow::generate("corp");
        let values = [
            flow.state(),
            flow.nonce(),
            flow.verifier(),
            flow.challenge(),
        ];
        for (at, value) in values.iter().enumerate() {
            assert_eq!(value.len(), 43);
            assert!(!values[..at].contains(value) && value != flow.secret());
        }
        assert!(flow.is_state(&flow.state()));
        assert!(!flow.is_state("") && !flow.is_state(&flow.nonce()));
        assert!(!BrowserFlow::generate("corp").is_state(&flow.state()));
        let elsewhere = BrowserFlow::of(flow.secret().to_owned(), "other");
        assert!(!elsewhere.is_state(&flow.state()));
    }
}
