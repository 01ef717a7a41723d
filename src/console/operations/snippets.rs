//! What to set in each client so that it uses the gateway.

use crate::console::views::SnippetView;

/// The variable that holds the secret of a key.
const VARIABLE: &str = "OMNIGLOT_KEY";

/// The snippets for a gateway and one of its models.
pub fn snippets(gateway: &str, model: &str) -> Vec<SnippetView> {
    let mut all = program_snippets(gateway, model);
    all.extend(sdk_snippets(gateway, model));
    all
}

fn snippet(
    id: &'static str,
    client: &'static str,
    format: &'static str,
    file: Option<&'static str>,
    text: String,
) -> SnippetView {
    SnippetView {
        id,
        client,
        format,
        file,
        text,
    }
}

/// Programs: a shell starts them.
fn program_snippets(gateway: &str, model: &str) -> Vec<SnippetView> {
    let name = serde_json::Value::from(model).to_string();
    let (shell_url, shell_model) = (quoted(gateway), quoted(model));
    let body =
        format!(r#"{{"model": {name}, "messages": [{{"role": "user", "content": "Hello"}}]}}"#);
    vec![
        snippet(
            "curl",
            "curl",
            "chat",
            None,
            format!(
                "curl {} \\\n  -H \"authorization: Bearer ${VARIABLE}\" -H 'content-type: application/json' \\\n  -d {}",
                quoted(&format!("{gateway}/v1/chat/completions")),
                quoted(&body)
            ),
        ),
        snippet(
            "claude-code",
            "Claude Code",
            "messages",
            None,
            format!(
                "export ANTHROPIC_BASE_URL={shell_url}\nexport ANTHROPIC_API_KEY=\"${VARIABLE}\"\nexport ANTHROPIC_MODEL={shell_model}\nclaude"
            ),
        ),
        snippet(
            "codex",
            "Codex",
            "responses",
            Some("~/.codex/config.toml"),
            format!(
                "model = {name}\nmodel_provider = \"gateway\"\n\n[model_providers.gateway]\nname = \"Omniglot\"\nbase_url = \"{gateway}/v1\"\nwire_api = \"responses\"\nenv_key = \"{VARIABLE}\""
            ),
        ),
        snippet(
            "gemini-cli",
            "Gemini CLI",
            "native",
            None,
            format!(
                "export GOOGLE_GEMINI_BASE_URL={shell_url}\nexport GEMINI_API_KEY=\"${VARIABLE}\"\ngemini -m {shell_model}"
            ),
        ),
    ]
}

/// Libraries of a language.
fn sdk_snippets(gateway: &str, model: &str) -> Vec<SnippetView> {
    let name = serde_json::Value::from(model).to_string();
    vec![
        snippet(
            "openai",
            "OpenAI SDK (Python)",
            "chat",
            None,
            format!(
                "import os\nfrom openai import OpenAI\n\nclient = OpenAI(base_url=\"{gateway}/v1\", api_key=os.environ[\"{VARIABLE}\"])\n\
             response = client.chat.completions.create(\n    model={name},\n    messages=[{{\"role\": \"user\", \"content\": \"Hello\"}}],\n)\n\
             print(response.choices[0].message.content)"
            ),
        ),
        snippet(
            "anthropic",
            "Anthropic SDK (Python)",
            "messages",
            None,
            format!(
                "import os\nfrom anthropic import Anthropic\n\nclient = Anthropic(base_url=\"{gateway}\", api_key=os.environ[\"{VARIABLE}\"])\n\
             message = client.messages.create(\n    model={name},\n    max_tokens=1024,\n    messages=[{{\"role\": \"user\", \"content\": \"Hello\"}}],\n)\n\
             print(message.content[0].text)"
            ),
        ),
        snippet(
            "google-genai",
            "Google Gen AI SDK (Python)",
            "native",
            None,
            format!(
                "import os\nfrom google import genai\nfrom google.genai import types\n\nclient = genai.Client(\n    api_key=os.environ[\"{VARIABLE}\"],\n    http_options=types.HttpOptions(base_url=\"{gateway}\"),\n)\n\
             response = client.models.generate_content(model={name}, contents=\"Hello\")\nprint(response.text)"
            ),
        ),
    ]
}

/// A word of a shell: as it is, or in quotes where a letter may mean something.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "-_./:@".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_shell_are_quoted_where_they_need_it() {
        for (word, text) in [
            ("vendor/model-1:8b", "vendor/model-1:8b"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's $HOME", "'it'\\''s $HOME'"),
        ] {
            assert_eq!(quoted(word), text);
        }
    }
}
