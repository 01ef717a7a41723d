//! `${NAME}` and `${NAME:-default}` inside a string, filled in from the environment.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Where variables come from: the process, or whatever a test or the demo says.
pub type Env<'a> = dyn Fn(&str) -> Option<String> + 'a;

static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}").expect("the pattern is valid")
});

/// The string with its variables filled in, or one message per variable that cannot be.
pub fn expand(text: &str, env: &Env) -> Result<String, Vec<String>> {
    let mut wrong = Vec::new();
    if VARIABLE.replace_all(text, "").contains("${") {
        wrong.push("a variable must be written ${NAME} or ${NAME:-default}".to_owned());
    }
    let expanded = VARIABLE.replace_all(text, |found: &Captures| {
        let name = &found[1];
        let value = env(name);
        match found.get(2) {
            // As in a shell, `:-` also stands in for a variable that is set to nothing.
            Some(default) => value
                .filter(|value| !value.is_empty())
                .unwrap_or_else(|| default.as_str().to_owned()),
            None => value.unwrap_or_else(|| {
                wrong.push(format!(
                    "the variable {name} is not set; set it, or give a default: ${{{name}:-default}}"
                ));
                String::new()
            }),
        }
    });
    let expanded = expanded.into_owned();
    if wrong.is_empty() {
        Ok(expanded)
    } else {
        Err(wrong)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("example.com".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${HOST}".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_filled_in_once() {
        for (text, expanded) in [
            ("plain $HOME {x} $", "plain $HOME {x} $"),
            ("https://${HOST}/${GONE:-v1}", "https://example.com/v1"),
            ("${GONE:-}", ""),
            ("${EMPTY:-full}", "full"),
            ("${EMPTY}", ""),
            ("${NESTED}", "${HOST}"),
            ("${GONE:-a:-b}", "a:-b"),
        ] {
            assert_eq!(expand(text, &env), Ok(expanded.to_owned()), "{text}");
        }
    }

    #[test]
    fn every_missing_or_misspelt_variable_is_named() {
        let wrong = expand("${ONE} ${TWO} ${3}", &env).expect_err("none of them is set");
        assert_eq!(wrong.len(), 3);
        assert!(wrong[1].contains("the variable ONE is not set"));
        assert!(wrong[2].contains("the variable TWO is not set"));
    }
}
