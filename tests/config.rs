//! Every bad config in tests/config must print exactly the lines of its `.problems` file, and every config in
//! tests/warnings those of its `.warnings` file.

use std::path::Path;

use omniglot::config::parse;
use similar_asserts::assert_eq;

/// What the environment holds; nothing that comes from it may be shown.
const CANARY: &str = "canary from the environment";

fn environment(name: &str) -> Option<String> {
    (name == "CANARY").then(|| CANARY.to_owned())
}

fn problems(path: &Path, text: String) -> datatest_stable::Result<()> {
    let expected = std::fs::read_to_string(path.with_extension("problems"))?;
    let file = path.file_name().and_then(|name| name.to_str());
    let problems = parse(file.unwrap_or_default(), &text, &environment)
        .err()
        .ok_or("this config is fine")?;
    let lines: Vec<_> = problems.iter().map(|line| format!("{line}\n")).collect();
    assert_eq!(lines.concat(), expected);
    assert!(!expected.contains(CANARY));
    assert!(!expected.contains("hush"), "what is named hush is secret");
    Ok(())
}

fn warnings(path: &Path, text: String) -> datatest_stable::Result<()> {
    let expected = std::fs::read_to_string(path.with_extension("warnings"))?;
    let file = path.file_name().and_then(|name| name.to_str());
    let config = parse(file.unwrap_or_default(), &text, &environment);
    let config = config.map_err(|problems| format!("{problems:?}"))?;
    let lines = config.warnings.iter().map(|line| format!("{line}\n"));
    assert_eq!(lines.collect::<String>(), expected);
    assert!(!expected.contains("hush"), "what is named hush is secret");
    Ok(())
}

datatest_stable::harness! {
    { test = problems, root = "tests/config", pattern = r"\.yaml$" },
    { test = warnings, root = "tests/warnings", pattern = r"\.yaml$" },
}
