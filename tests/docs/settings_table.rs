//! The table of settings in docs/translation.md, which is that of `src/formats/settings.rs`.

use omniglot::formats::SettingRule;
use omniglot::model::{Format, ImageSetting, Setting};

const FORMATS: [Format; 5] = [
    Format::Chat,
    Format::Responses,
    Format::Messages,
    Format::Native,
    Format::Images,
];

const SETTINGS: [(&str, Setting); 26] = [
    ("output limit", Setting::MaxTokens),
    ("temperature", Setting::Temperature),
    ("top-p", Setting::TopP),
    ("top-k", Setting::TopK),
    ("seed", Setting::Seed),
    ("stop sequences", Setting::Stop),
    ("presence penalty", Setting::PresencePenalty),
    ("frequency penalty", Setting::FrequencyPenalty),
    ("choices", Setting::Choices),
    ("log probabilities", Setting::Logprobs),
    ("reasoning", Setting::Thinking),
    ("tool choice", Setting::ToolChoice),
    ("parallel tool calls", Setting::ParallelTools),
    ("structured output", Setting::OutputFormat),
    ("its name", Setting::OutputName),
    ("its description", Setting::OutputDescription),
    ("verbosity", Setting::Verbosity),
    ("web search", Setting::Search),
    ("code execution", Setting::CodeExecution),
    ("end user", Setting::User),
    ("cache key", Setting::CacheKey),
    ("service tier", Setting::ServiceTier),
    ("metadata", Setting::Metadata),
    ("image output", Setting::Images),
    ("image size", Setting::Image(ImageSetting::Size)),
    ("audio output", Setting::Audio),
];

/// Checks that the page has the table as the code has it.
pub fn check() {
    let table = table();
    let page = std::fs::read_to_string(crate::root().join("docs/translation.md")).expect("a page");
    assert!(
        page.contains(&table),
        "docs/translation.md needs this table of settings:\n\n{table}"
    );
}

fn table() -> String {
    let head = FORMATS.map(|format| format!(" {} |", format.name()));
    let mut table = format!("| setting |{}\n|{}\n", head.concat(), " --- |".repeat(6));
    for (name, setting) in SETTINGS {
        let cells = FORMATS.map(|format| format!(" {} |", cell(format.setting(setting))));
        table.push_str(&format!("| {name} |{}\n", cells.concat()));
    }
    table
}

fn cell(rule: SettingRule) -> String {
    match rule {
        SettingRule::Field(path) => format!("`{path}`"),
        SettingRule::Number(path, min, max) => format!("`{path}`, {min} to {max}"),
        SettingRule::Integer(path, min, i64::MAX) => format!("`{path}`, at least {min}"),
        SettingRule::Integer(path, min, max) => format!("`{path}`, {min} to {max}"),
        SettingRule::Dropped(_) => "dropped".to_owned(),
        SettingRule::Refused(_) => "refused".to_owned(),
    }
}
