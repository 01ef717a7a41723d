//! Tool names within a namespace.

use crate::model::Text;

const SEPARATOR: &str = "__";

/// Joins namespace and name, so that two namespaces may have tools of the same name.
pub(super) fn qualified_name<'a>(namespace: Option<&str>, name: Text<'a>) -> Text<'a> {
    match namespace {
        Some(namespace) => format!("{namespace}{SEPARATOR}{name}").into(),
        None => name,
    }
}

/// Takes the namespace off a name again.
pub(super) fn unqualified_name<'n>(namespace: &str, qualified: &'n str) -> &'n str {
    let rest = qualified.strip_prefix(namespace);
    let name = rest.and_then(|rest| rest.strip_prefix(SEPARATOR));
    name.unwrap_or(qualified)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_is_taken_off_the_name_it_was_joined_with() {
        for name in ["f", "a__f", "__f", ""] {
            let both = qualified_name(Some("a__b"), name.into());
            assert_eq!(unqualified_name("a__b", &both), name);
        }
        assert_eq!(unqualified_name("a", "b__f"), "b__f");
    }
}
