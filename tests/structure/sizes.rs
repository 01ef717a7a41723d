//! Files and functions that can be read at one go.

use crate::floors::{Source, sources};

/// Files have fewer lines than this, tests not counted.
const FILE_LIMIT: usize = 420;
/// Functions have fewer lines than this.
const FUNCTION_LIMIT: usize = 80;
/// Tables that only look like functions.
const TABLES: [(&str, &str); 1] = [("formats/settings.rs", "setting")];

#[test]
fn files_are_short() {
    let long: Vec<_> = sources()
        .into_iter()
        .map(|source| (source.shipped_length(), source.path))
        .filter(|(length, _)| *length >= FILE_LIMIT)
        .collect();
    assert!(long.is_empty(), "split these files: {long:?}");
}

#[test]
fn functions_are_short() {
    let sources = sources();
    let long: Vec<_> = sources
        .iter()
        .flat_map(|source| {
            let functions = functions(source).into_iter();
            functions.map(move |function| (&*source.path, function))
        })
        .filter(|(path, (name, _))| !TABLES.contains(&(path, name)))
        .filter(|(_, (_, length))| *length >= FUNCTION_LIMIT)
        .collect();
    assert!(long.is_empty(), "split these functions: {long:?}");
}

/// Each function with its number of lines. A formatted function ends with a brace below its first letter.
fn functions(source: &Source) -> Vec<(&str, usize)> {
    let lines: Vec<(usize, &str)> = source.shipped_code().collect();
    let mut found = Vec::new();
    for (at, (first, line)) in lines.iter().enumerate() {
        let Some(name) = function_name(line) else {
            continue;
        };
        let is_end = |(_, below): &&(usize, &str)| {
            indent(below) == indent(line) && below.ends_with(['}', ';'])
        };
        if let Some((last, _)) = lines[at..].iter().find(is_end) {
            found.push((name, last + 1 - first));
        }
    }
    found
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

fn function_name(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_qualifier = |word: &str| matches!(word, "const" | "async") || word.starts_with("pub");
    let is_function = before.split_whitespace().all(is_qualifier);
    after.split(['(', '<']).next().filter(|_| is_function)
}
