//! The capabilities that translation heeds, with the values that each may have: for forms and lists.

use crate::model::Format;

const SWITCH: &[&str] = &["true", "false"];

/// A capability by its name in the config.
#[derive(Debug, Clone, Copy)]
pub struct CapabilityFlag {
    pub name: &'static str,
    /// Empty: there are too many to list.
    pub values: &'static [&'static str],
    pub example: &'static str,
}

impl CapabilityFlag {
    const fn of(name: &'static str, values: &'static [&'static str]) -> CapabilityFlag {
        CapabilityFlag {
            name,
            values,
            example: "",
        }
    }

    const fn like(name: &'static str, example: &'static str) -> CapabilityFlag {
        CapabilityFlag {
            name,
            values: &[],
            example,
        }
    }

    /// Tells whether it counts for upstreams of a format. The name begins with that of the format, or it is for all.
    pub fn concerns(&self, format: Format) -> bool {
        let first = self.name.split('_').next().unwrap_or_default();
        match Format::from_name(first) {
            Some(own) => own == format,
            None => self.name != "image_sizes" || format == Format::Images,
        }
    }
}

/// All that translation heeds, in the order of the documentation. Those of embeddings are not among them.
pub const CAPABILITY_FLAGS: [CapabilityFlag; 23] = [
    CapabilityFlag::of("messages_version", &["2026-10-21", "2023-06-01"]),
    CapabilityFlag::of("messages_mid_system", SWITCH),
    CapabilityFlag::of("messages_thinking", &["adaptive", "budget"]),
    CapabilityFlag::of("messages_sampling", SWITCH),
    CapabilityFlag::of("messages_prefill", SWITCH),
    CapabilityFlag::of(
        "messages_web_search",
        &["20250305", "20260209", "20260318", "none"],
    ),
    CapabilityFlag::of("native_requires_signature", SWITCH),
    CapabilityFlag::of("native_thinking", &["level", "budget"]),
    CapabilityFlag::like("native_thinking_range", "128-32768"),
    CapabilityFlag::of("native_function_response_parts", SWITCH),
    CapabilityFlag::of("native_image_output", SWITCH),
    CapabilityFlag::like("image_sizes", "1024x1024,1536x1024"),
    CapabilityFlag::of("chat_max_field", &["max_completion_tokens", "max_tokens"]),
    CapabilityFlag::of("chat_system_role", &["system", "developer"]),
    CapabilityFlag::of("chat_returns_reasoning", SWITCH),
    CapabilityFlag::of("chat_think_tags", SWITCH),
    CapabilityFlag::like("chat_unsupported", "logit_bias,messages.name"),
    CapabilityFlag::of("responses_encrypted_reasoning", SWITCH),
    CapabilityFlag::of("responses_keeps_state", SWITCH),
    CapabilityFlag::of("sampling", SWITCH),
    CapabilityFlag::of("search", &["always", "alone", "never"]),
    CapabilityFlag::of("parallel_switch", SWITCH),
    CapabilityFlag::like("efforts", "low,medium,high"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::Capabilities;

    #[test]
    fn every_value_of_the_list_is_accepted() {
        for flag in CAPABILITY_FLAGS {
            let example = Some(flag.example).filter(|example| !example.is_empty());
            let values = flag.values.iter().copied().chain(example);
            assert!(values.clone().count() > 0, "{}", flag.name);
            for value in values {
                let set = Capabilities::default().set(flag.name, value);
                assert_eq!(set, Ok(()), "{} = {value}", flag.name);
            }
        }
    }

    #[test]
    fn every_capability_is_listed() {
        let source = include_str!("capabilities.rs");
        let names = source.lines().filter_map(|line| {
            let name = line.strip_prefix("            \"")?;
            let (name, rest) = name.split_once('"')?;
            rest.starts_with(" =>").then_some(name)
        });
        let names: Vec<&str> = names.collect();
        assert!(names.len() > 20, "they were found: {names:?}");
        for name in names {
            let is_listed = CAPABILITY_FLAGS.iter().any(|flag| flag.name == name);
            assert!(is_listed || name == "embedding_input_type", "{name}");
        }
    }

    #[test]
    fn a_capability_is_for_the_format_of_its_name() {
        let for_format = |format: Format| {
            let flags = CAPABILITY_FLAGS.iter().filter(|flag| flag.concerns(format));
            flags.map(|flag| flag.name).collect::<Vec<_>>()
        };
        let native = for_format(Format::Native);
        assert!(native.contains(&"native_thinking") && native.contains(&"efforts"));
        assert!(!native.contains(&"chat_think_tags") && !native.contains(&"image_sizes"));
        assert!(for_format(Format::Images).contains(&"image_sizes"));
    }
}
