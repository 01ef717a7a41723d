//! The files that AWS tools share: `~/.aws/config` and `~/.aws/credentials`.

use std::collections::BTreeMap;

/// The settings of one profile.
pub(super) type Profile = BTreeMap<String, String>;

/// What stands in the two files.
#[derive(Debug, Default)]
pub(super) struct SharedFiles {
    /// The profiles of the config file.
    config: BTreeMap<String, Profile>,
    /// The profiles of the credentials file.
    credentials: BTreeMap<String, Profile>,
}

impl SharedFiles {
    /// Reads the texts of the two files. `Err`: the line of a file that cannot be read.
    pub(super) fn parse(config: &str, credentials: &str) -> Result<SharedFiles, String> {
        let sections = parse_sections(config);
        let sections = sections.map_err(|line| unreadable("config", line))?;
        let credentials = parse_sections(credentials);
        let credentials = credentials.map_err(|line| unreadable("credentials", line))?;
        let mut config: BTreeMap<String, Profile> = BTreeMap::new();
        for (section, settings) in sections {
            if let Some(name) = profile_name(&section) {
                config.insert(name, settings);
            }
        }
        Ok(SharedFiles {
            config,
            credentials,
        })
    }

    /// The settings of a profile, of which those in the credentials file win. `None`: neither file has it.
    pub(super) fn profile(&self, name: &str) -> Option<Profile> {
        let (config, credentials) = (self.config.get(name), self.credentials.get(name));
        if config.is_none() && credentials.is_none() {
            return None;
        }
        let settings = [config, credentials].into_iter().flatten().flatten();
        Some(
            settings
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect(),
        )
    }

    /// The settings of a profile in the credentials file.
    pub(super) fn in_credentials_file(&self, name: &str) -> Option<&Profile> {
        self.credentials.get(name)
    }

    /// The settings of a profile in the config file.
    pub(super) fn in_config_file(&self, name: &str) -> Option<&Profile> {
        self.config.get(name)
    }
}

fn unreadable(file: &str, line: usize) -> String {
    format!("line {line} of the shared {file} file of AWS cannot be read")
}

/// The profile that a section of the config file is for.
fn profile_name(section: &str) -> Option<String> {
    if section == "default" {
        return Some(section.to_owned());
    }
    let name = section.strip_prefix("profile")?;
    if !name.starts_with([' ', '\t']) {
        return None;
    }
    let words = split_words(name)?;
    let [name] = <[String; 1]>::try_from(words).ok()?;
    Some(name)
}

/// Reads the sections of such a file: `[name]`, then lines of `key = value`. Lines that begin with a space belong to the
/// value before them, which no setting for credentials has; they are skipped. `Err`: the number of the wrong line.
fn parse_sections(text: &str) -> Result<BTreeMap<String, Profile>, usize> {
    let mut sections: BTreeMap<String, Profile> = BTreeMap::new();
    let mut section: Option<String> = None;
    for (number, line) in text.lines().enumerate() {
        let content = line.trim();
        if content.is_empty() || content.starts_with(['#', ';']) {
            continue;
        }
        if let Some(rest) = line.strip_prefix('[') {
            let (name, _) = rest.split_once(']').ok_or(number + 1)?;
            sections.entry(name.to_owned()).or_default();
            section = Some(name.to_owned());
            continue;
        }
        let settings = section.as_ref().and_then(|name| sections.get_mut(name));
        let settings = settings.ok_or(number + 1)?;
        if line.starts_with([' ', '\t']) && !settings.is_empty() {
            continue;
        }
        let (key, value) = content.split_once(['=', ':']).ok_or(number + 1)?;
        settings.insert(key.trim().to_lowercase(), value.trim().to_owned());
    }
    Ok(sections)
}

/// Splits a command into its words, as a shell does. `None`: a quote is not closed.
pub(super) fn split_words(text: &str) -> Option<Vec<String>> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' | '\t' | '\n' | '\r' => words.extend(word.take()),
            '\'' => loop {
                match letters.next()? {
                    '\'' => {
                        word.get_or_insert_default();
                        break;
                    }
                    letter => word.get_or_insert_default().push(letter),
                }
            },
            '"' => loop {
                let word = word.get_or_insert_default();
                match letters.next()? {
                    '"' => break,
                    '\\' => match letters.next()? {
                        escaped @ ('"' | '\\') => word.push(escaped),
                        other => word.extend(['\\', other]),
                    },
                    letter => word.push(letter),
                }
            },
            '\\' => word.get_or_insert_default().push(letters.next()?),
            letter => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    Some(words)
}

#[cfg(test)]
#[path = "tests/shared_files.rs"]
mod tests;
