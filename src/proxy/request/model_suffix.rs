//! Names of models with a suffix, by which routers choose another service (`:online`) or another model (`@preset/mine`).

use crate::config::ModelOrigin;
use crate::model::{ApiError, truncated};
use crate::runtime::{AskedModel, Attempt, Key};

/// What separates a suffix from the name.
const SEPARATORS: [char; 3] = [':', '@', '#'];

/// A suffix that stands for settings which the owner of the upstream's account has stored, a model among them.
const PRESET: &str = "@preset";

/// Refuses a name with a suffix that the `*` of an id matches, for a key that may use some models only, or has a cap:
/// the prices are those of the id. What an upstream lists is a model of its own, and an id with such a separator asks for
/// suffixes.
pub(in crate::proxy) fn check(
    key: Option<&Key>,
    asked: &AskedModel<'_, '_>,
    attempts: &[Attempt],
) -> Result<(), ApiError> {
    let settings = &asked.model.settings;
    let (Some(key), Some(matched)) = (key, asked.matched) else {
        return Ok(());
    };
    if settings.origin == ModelOrigin::Discovered || settings.id.contains(SEPARATORS) {
        return Ok(());
    }
    let is_paid = || {
        let mut attempts = attempts.iter();
        attempts.any(|attempt| attempt.settings.prices.is_some())
    };
    let capped = key.capped().filter(|_| has_suffix(matched) && is_paid());
    let why = if let Some(capped) = capped {
        format!(
            "{capped} has a spending cap, and an upstream may charge other prices for a name with a suffix"
        )
    } else if key.is_restricted() && matched.to_ascii_lowercase().contains(PRESET) {
        let key = &key.name;
        format!(
            "the API key `{key}` may use some models only, and a preset may stand for another model"
        )
    } else {
        return Ok(());
    };
    let (name, id) = (truncated(asked.name), &settings.id);
    let message = format!(
        "model: `{name}` is served by the id `{id}`; {why}: leave the suffix out, or list the model \
         under `models`"
    );
    Err(ApiError::invalid(message).at("model"))
}

/// Tells whether a name has a suffix. One that begins with a digit is a version or a size, such as those of Bedrock (`v1:0`),
/// Vertex AI (`@20250514`) and Ollama (`:8b`), and part of the name.
fn has_suffix(name: &str) -> bool {
    let mut suffixes = name.split(SEPARATORS).skip(1);
    suffixes.any(|suffix| !suffix.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::has_suffix;

    #[test]
    fn versions_and_sizes_are_no_suffixes() {
        for name in [
            "large",
            "acme/large-2",
            "anthropic.claude-v2:0",
            "claude@20250514",
            "llama3:8b-instruct-q4",
        ] {
            assert!(!has_suffix(name), "{name}");
        }
        for name in [
            "large:online",
            "large:8b:nitro",
            "large:",
            "@preset/mine",
            "large@preset/mine",
            "llama3:latest",
            "large#deployment",
        ] {
            assert!(has_suffix(name), "{name}");
        }
    }
}
