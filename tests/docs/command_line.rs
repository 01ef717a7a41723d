//! The page about the command line lists every command and every flag, and none that is not there.

use std::collections::BTreeSet;

use regex::Regex;

use crate::process::omniglot;
use crate::read;

const PAGE: &str = "docs/cli.md";

pub fn check() {
    let page = read(PAGE);
    let mut flags = BTreeSet::new();
    let mut commands = Vec::new();
    collect(&mut Vec::new(), &mut flags, &mut commands);
    for command in &commands {
        // The subcommands of `key` stand in one row.
        let words = command.split_whitespace().collect::<Vec<_>>();
        let tail = words[words.len().saturating_sub(2)..].join(" ");
        let named =
            page.contains(&format!("`omniglot {command}")) || page.contains(&format!("`{tail}`"));
        assert!(named, "{PAGE} does not describe `omniglot {command}`");
    }
    for flag in &flags {
        let pattern = Regex::new(&format!(r"`{flag}[ `]")).expect("a pattern");
        assert!(pattern.is_match(&page), "{PAGE} does not describe {flag}");
    }
    let pattern = Regex::new(r"`(--[a-z-]+)").expect("a pattern");
    for found in pattern.captures_iter(&page) {
        let flag = &found[1];
        assert!(
            flags.contains(flag),
            "{PAGE} describes {flag}, which is not there"
        );
    }
    assert!(
        commands.len() > 8 && flags.len() > 15,
        "{commands:?} {flags:?}"
    );
}

/// Reads the help of a command, and of its subcommands.
fn collect(path: &mut Vec<String>, flags: &mut BTreeSet<String>, commands: &mut Vec<String>) {
    let output = omniglot().args(path.iter()).arg("--help").output();
    let help = String::from_utf8(output.expect("omniglot runs").stdout).expect("text");
    let mut section = "";
    let flag = Regex::new(r"^ {2,6}(?:(-[a-zA-Z]), )?(--[a-z-]+)").expect("a pattern");
    for line in help.lines() {
        if line.ends_with(':') && !line.starts_with(' ') {
            section = line;
        } else if section == "Options:" {
            if let Some(found) = flag.captures(line) {
                let names = [found.get(1), found.get(2)];
                flags.extend(
                    names
                        .into_iter()
                        .flatten()
                        .map(|name| name.as_str().to_owned()),
                );
            }
        } else if section == "Commands:"
            && let Some(name) = line.split_whitespace().next()
        {
            path.push(name.to_owned());
            if path.last().is_some_and(|name| name != "help") {
                commands.push(path.join(" "));
                collect(path, flags, commands);
            }
            path.pop();
        }
    }
}
