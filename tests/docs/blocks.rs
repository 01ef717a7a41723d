//! Finds the code blocks of a Markdown page.

/// One fenced block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    pub kind: Kind,
    pub text: String,
    /// The line of the opening fence, from 1.
    pub line: usize,
}

/// What is done with a block, known from the words after its opening fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Kind {
    /// `sh`: commands that must succeed.
    Command,
    /// `sh start`: a script of the repository that starts the demo.
    Start,
    /// `sh no-run`, `yaml no-run`: cannot be tried here, and is on a list of such blocks.
    NotRun,
    /// `yaml`, or `yaml file=NAME`: a whole config, saved under the name for later commands.
    Config(Option<String>),
    /// `json output`: the output of the command before it, which may have further fields.
    JsonOutput,
    /// `text output`: the output of the command before it.
    TextOutput,
    /// `text`: a drawing.
    Drawing,
}

pub fn of_page(text: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().zip(1..);
    while let Some((fence, line)) = lines.next() {
        let Some(info) = fence.trim_start().strip_prefix("```") else {
            continue;
        };
        let body = lines.by_ref().map(|(text, _)| text);
        let body: Vec<&str> = body.take_while(|text| text.trim() != "```").collect();
        let kind = kind(info).unwrap_or_else(|| panic!("line {line}: unknown fence ```{info}"));
        let text = body.join("\n");
        blocks.push(Block { kind, text, line });
    }
    blocks
}

fn kind(info: &str) -> Option<Kind> {
    Some(match info {
        "sh" => Kind::Command,
        "sh start" => Kind::Start,
        "sh no-run" | "yaml no-run" => Kind::NotRun,
        "yaml" => Kind::Config(None),
        "json output" => Kind::JsonOutput,
        "text output" => Kind::TextOutput,
        "text" => Kind::Drawing,
        _ => Kind::Config(Some(info.strip_prefix("yaml file=")?.to_owned())),
    })
}
