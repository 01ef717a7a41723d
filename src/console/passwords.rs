//! Passwords, hashed with Argon2id: slow on purpose, and the same work whether an account exists or not.

use std::sync::OnceLock;

use argon2::password_hash::phc::PasswordHash;
use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _};
use argon2::{Algorithm, Argon2, Params, Version};

use super::blocking_work::BlockingWork;
use super::refusal::{InputProblem, Refusal};

/// As OWASP recommends: 19 MiB, two passes, one lane.
const MEMORY_KIB: u32 = 19 * 1024;
const PASSES: u32 = 2;
const LANES: u32 = 1;

/// How many hashes are computed at once; each takes its memory and a processor.
const AT_ONCE: usize = 2;

const SHORTEST: usize = 10;
const LONGEST: usize = 256;

/// Hashes and verifies passwords.
pub struct Passwords {
    work: BlockingWork,
}

impl Default for Passwords {
    fn default() -> Passwords {
        Passwords {
            work: BlockingWork::new(AT_ONCE),
        }
    }
}

impl Passwords {
    /// Hashes a new password, if it is long enough.
    pub async fn hash(&self, password: &str) -> Result<String, Refusal> {
        if password.chars().count() < SHORTEST {
            return Err(InputProblem::PasswordShort.into());
        }
        if password.len() > LONGEST {
            return Err(InputProblem::PasswordLong.into());
        }
        let password = password.to_owned();
        let hash = self.work.run(move || new_hash(&password)).await?;
        hash.ok_or(Refusal::Unavailable)
    }

    /// Verifies a password. Without a hash it does the same work, and the answer is no.
    pub async fn verify(&self, password: &str, hash: Option<&str>) -> bool {
        if password.len() > LONGEST {
            return false;
        }
        let (password, hash) = (password.to_owned(), hash.map(str::to_owned));
        let verified = self.work.run(move || {
            let is_known = hash.is_some();
            let hash = hash.as_deref().unwrap_or_else(|| nobody());
            let matches = PasswordHash::new(hash).is_ok_and(|hash| {
                let verified =
                    argon2().map(|argon2| argon2.verify_password(password.as_bytes(), &hash));
                verified.is_some_and(|verified| verified.is_ok())
            });
            matches && is_known
        });
        verified.await.unwrap_or(false)
    }
}

fn argon2() -> Option<Argon2<'static>> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).ok()?;
    Some(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn new_hash(password: &str) -> Option<String> {
    let hash = argon2()?.hash_password(password.as_bytes()).ok()?;
    Some(hash.to_string())
}

/// The hash of a password that nobody has.
fn nobody() -> &'static str {
    static NOBODY: OnceLock<String> = OnceLock::new();
    NOBODY.get_or_init(|| new_hash("nobody has this password").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_password_verifies_against_its_own_hash_only() {
        let passwords = Passwords::default();
        let hash = passwords.hash("correct horse").await.expect("a hash");
        assert!(
            hash.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"),
            "{hash}"
        );
        assert!(passwords.verify("correct horse", Some(&hash)).await);
        assert!(!passwords.verify("correct house", Some(&hash)).await);
        assert!(!passwords.verify("nobody has this password", None).await);
        let again = passwords.hash("correct horse").await.expect("a hash");
        assert_ne!(hash, again);
    }

    #[tokio::test]
    async fn short_and_endless_passwords_are_refused() {
        let passwords = Passwords::default();
        let short = passwords.hash("123456789").await;
        assert_eq!(short, Err(InputProblem::PasswordShort.into()));
        let long = passwords.hash(&"x".repeat(257)).await;
        assert_eq!(long, Err(InputProblem::PasswordLong.into()));
    }
}
