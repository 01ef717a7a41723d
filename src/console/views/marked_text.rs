//! Text for people, in lines, with marks.

/// How many pieces of text are shown at most: a page has to stay readable.
const MAX_SPANS: usize = 20_000;
const MAX_LINES: usize = 4_000;

/// What has become of a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// It is in the output and not in the input; found by comparing.
    Written,
    /// The translation reports it.
    Added,
    Adjusted,
    Dropped,
    /// The whole body is refused because of it.
    Refused,
}

impl Mark {
    /// The word for stylesheets.
    pub const fn word(self) -> &'static str {
        match self {
            Mark::Written => "written",
            Mark::Added => "added",
            Mark::Adjusted => "adjusted",
            Mark::Dropped => "dropped",
            Mark::Refused => "refused",
        }
    }

    /// The sign before a line, so that no mark is a color alone.
    pub const fn sign(self) -> &'static str {
        match self {
            Mark::Written => "·",
            Mark::Added => "+",
            Mark::Adjusted => "~",
            Mark::Dropped => "−",
            Mark::Refused => "!",
        }
    }
}

/// A piece of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MarkedSpan {
    pub text: String,
    pub mark: Option<Mark>,
    /// It is the name of a member.
    pub is_name: bool,
}

/// A line.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkedLine {
    pub spans: Vec<MarkedSpan>,
    /// The strongest mark of it.
    pub mark: Option<Mark>,
}

/// A text, as far as it is shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MarkedText {
    pub lines: Vec<MarkedLine>,
    /// There is more.
    pub is_cut: bool,
    spans: usize,
}

impl MarkedText {
    /// A text as it stands, without marks.
    pub fn plain(text: &str) -> MarkedText {
        let mut plain = MarkedText::default();
        for line in text.lines() {
            plain.write(clipped(line), None, false);
            plain.end_line();
        }
        plain
    }

    /// Adds to the last line.
    pub fn write(&mut self, text: String, mark: Option<Mark>, is_name: bool) {
        if self.lines.len() >= MAX_LINES || self.spans >= MAX_SPANS {
            self.is_cut = true;
            return;
        }
        if self.lines.is_empty() {
            self.lines.push(MarkedLine::default());
        }
        let Some(line) = self.lines.last_mut() else {
            return;
        };
        line.mark = line.mark.max(mark);
        match line.spans.last_mut() {
            Some(last) if last.mark == mark && last.is_name == is_name => last.text += &text,
            _ => {
                self.spans += 1;
                line.spans.push(MarkedSpan {
                    text,
                    mark,
                    is_name,
                });
            }
        }
    }

    pub fn end_line(&mut self) {
        if !self.is_cut {
            self.lines.push(MarkedLine::default());
        }
    }

    /// Removes the line that has just begun, where nothing follows.
    pub fn finish(&mut self) {
        if self.lines.last().is_some_and(|line| line.spans.is_empty()) {
            self.lines.pop();
        }
    }

    #[cfg(test)]
    pub fn text(&self) -> String {
        let line = |line: &MarkedLine| {
            let spans = line.spans.iter().map(|span| match span.mark {
                Some(mark) => format!("<{} {}>", mark.word(), span.text),
                None => span.text.clone(),
            });
            spans.collect::<String>()
        };
        let lines: Vec<String> = self.lines.iter().map(line).collect();
        lines.join("\n")
    }
}

/// The most of a value that is shown, and how much is shown of a longer one, in bytes.
const LONGEST: usize = 600;
const SHOWN: usize = 300;

/// A long text without its end: pictures are of no use here.
pub fn clipped(text: &str) -> String {
    if text.len() <= LONGEST {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(SHOWN);
    format!("{}… ({} B)", &text[..end], text.len())
}
