//! Warns of base URLs that already have a part of the path that the gateway appends.

use super::settings::BaseUrl;
use crate::formats::{EmbedMethod, Framing, Operation};
use crate::model::Format;

const OPERATIONS: [Operation; 5] = [
    Operation::Generate,
    Operation::Embed(EmbedMethod::Batch),
    Operation::Stream(Framing::Sse),
    Operation::CountTokens,
    Operation::Edit,
];

/// The warning for a base URL with which the gateway would ask for paths such as `/v1/v1/messages`.
///
/// Only the gateway's own words are quoted: the URL may come from the environment.
pub fn doubled_path(format: Format, base_url: &BaseUrl) -> Option<String> {
    let base = segments(&base_url.prefix);
    let own = OPERATIONS.map(|operation| format.codec().upstream_path(operation, ""));
    let doubled = own.iter().map(|path| (path, overlap(&base, path)));
    if let Some((path, overlap)) = doubled.max_by_key(|(_, overlap)| *overlap)
        && overlap > 0
    {
        let again = segments(path)[..overlap].join("/");
        return Some(format!(
            "base_url ends with \"/{again}\", which the gateway appends itself; remove it"
        ));
    }
    let first = segments(&own[0]).first().copied().unwrap_or_default();
    let last = base.last().copied().unwrap_or_default();
    if is_version(first) && is_version(last) {
        return Some(format!(
            "base_url ends with a version, and the gateway appends \"/{first}\" itself; remove it"
        ));
    }
    other_endpoint(format, &base)
}

/// The warning for a base URL that ends with the whole path of another format.
fn other_endpoint(format: Format, base: &[&str]) -> Option<String> {
    let others = Format::EVERY.into_iter().filter(|other| *other != format);
    let other = others
        .flat_map(|other| OPERATIONS.map(|operation| (other, operation)))
        .find(|(other, operation)| {
            let path = other.codec().upstream_path(*operation, "");
            overlap(base, &path) == segments(&path).len()
        });
    let (other, name) = (other?.0.name(), format.name());
    Some(format!(
        "base_url ends with a path of the format {other}, but the format is {name}; remove the path or change the format"
    ))
}

/// How many segments at the end of the base are those at the start of the path.
fn overlap(base: &[&str], path: &str) -> usize {
    let path = segments(path);
    let fits = |count: &usize| {
        let end = base.len().checked_sub(*count).map(|start| &base[start..]);
        end.is_some_and(|end| {
            end.iter()
                .zip(&path)
                .all(|(one, other)| is_same(one, other))
        })
    };
    (1..=path.len()).rev().find(fits).unwrap_or(0)
}

/// A method behind a colon follows the name of a model, which is any.
fn is_same(base: &str, own: &str) -> bool {
    base == own || own.starts_with(':') && base.contains(':')
}

fn segments(path: &str) -> Vec<&str> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .collect()
}

/// `v1`, `v1beta`, `v2alpha1`.
fn is_version(segment: &str) -> bool {
    let rest = segment.strip_prefix('v').unwrap_or_default();
    let words = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let words = words.trim_end_matches(|digit: char| digit.is_ascii_digit());
    rest.starts_with(|digit: char| digit.is_ascii_digit()) && matches!(words, "" | "alpha" | "beta")
}
