//! The text of an answer as citations refer to it: by bytes of a part, or by characters of the whole.

use crate::model::Text;

/// The text of all parts that hold text, in their order.
#[derive(Default)]
pub(super) struct CitedText<'a> {
    runs: Vec<TextRun<'a>>,
    /// How many runs at the start are complete and indexed.
    indexed: usize,
    /// The length of all runs.
    length: usize,
}

/// A part of the answer that holds text.
struct TextRun<'a> {
    /// Its index among all parts.
    part: usize,
    text: Text<'a>,
    first_byte: usize,
    first_character: usize,
    characters: usize,
    /// How many characters of the run begin before each `STEP`th byte, so that no citation needs a
    /// look at more than one step.
    marks: Vec<usize>,
    /// How many bytes are indexed.
    bytes: usize,
}

const STEP: usize = 64;

impl<'a> CitedText<'a> {
    /// Appends the text of a new part.
    pub(super) fn push(&mut self, part: usize, text: Text<'a>) {
        self.length += text.len();
        self.runs.push(TextRun {
            part,
            text,
            first_byte: 0,
            first_character: 0,
            characters: 0,
            marks: Vec::new(),
            bytes: 0,
        });
    }

    /// Appends streamed text, which may belong to the last part.
    pub(super) fn extend(&mut self, part: usize, text: &str) {
        match self.runs.last_mut() {
            Some(run) if run.part == part => {
                run.text.to_mut().push_str(text);
                self.length += text.len();
            }
            _ => self.push(part, text.to_owned().into()),
        }
    }

    /// About how many bytes it takes.
    pub(super) const fn held(&self) -> usize {
        let marks = self.length / STEP * size_of::<usize>();
        self.runs.len() * size_of::<TextRun<'_>>() + self.length + marks
    }

    /// Indexes what was appended since the last time.
    pub(super) fn indexed(&mut self) -> IndexedText<'_> {
        for at in self.indexed..self.runs.len() {
            let (before, rest) = self.runs.split_at_mut(at);
            if let Some(before) = before.last() {
                rest[0].first_byte = before.first_byte + before.text.len();
                rest[0].first_character = before.first_character + before.characters;
            }
            rest[0].index();
        }
        // The last run may still grow.
        self.indexed = self.runs.len().saturating_sub(1);
        IndexedText(&self.runs)
    }
}

/// Text in which positions are found without a search through all of it.
pub(super) struct IndexedText<'t>(&'t [TextRun<'t>]);

/// A range of bytes in a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TextSegment<'t> {
    pub(super) part: usize,
    pub(super) start: usize,
    pub(super) text: &'t str,
}

impl<'t> IndexedText<'t> {
    /// The bytes of the whole text.
    pub(super) fn len(&self) -> usize {
        self.0.iter().map(|run| run.text.len()).sum()
    }

    /// Converts the index of a byte in a part to the index of a character in the whole text. Where the
    /// part has no such byte, the index counts through all of the text.
    pub(super) fn character_in_part(&self, part: usize, byte: usize) -> u64 {
        let runs = self.0;
        let run = runs.binary_search_by_key(&part, |run| run.part);
        match run.ok().map(|at| &runs[at]) {
            Some(run) if byte <= run.text.len() => run.character_at(byte),
            _ => self.character(byte),
        }
    }

    /// Converts the index of a byte in the whole text to the index of a character.
    pub(super) fn character(&self, byte: usize) -> u64 {
        let runs = self.0;
        let at = runs.partition_point(|run| run.first_byte <= byte);
        let run = at.checked_sub(1).map(|at| &runs[at]);
        run.map_or(0, |run| run.character_at(byte - run.first_byte))
    }

    /// Finds a range of characters. It ends with the part in which it begins, as a segment cannot reach
    /// into the next part.
    pub(super) fn segment(&self, start: u64, end: u64) -> Option<TextSegment<'t>> {
        let first = usize::try_from(start).ok()?;
        let length = usize::try_from(end.checked_sub(start)?).ok()?;
        let at = self.0.partition_point(|run| run.first_character <= first);
        let run = &self.0[at.checked_sub(1)?];
        let first = first - run.first_character;
        let start = run.byte_at(first)?;
        let end = first.checked_add(length).and_then(|end| run.byte_at(end));
        let text = &run.text[start..end.unwrap_or(run.text.len())];
        (!text.is_empty()).then_some(TextSegment {
            part: run.part,
            start,
            text,
        })
    }
}

impl TextRun<'_> {
    fn index(&mut self) {
        let bytes = self.text.as_bytes();
        for (at, byte) in bytes.iter().enumerate().skip(self.bytes) {
            if at % STEP == 0 {
                self.marks.push(self.characters);
            }
            self.characters += usize::from(begins_character(*byte));
        }
        self.bytes = bytes.len();
    }

    /// Counts the characters of the whole text that begin before this byte of the run.
    fn character_at(&self, byte: usize) -> u64 {
        let bytes = self.text.as_bytes();
        let inside = match self.marks.get(byte / STEP) {
            Some(before) if byte <= bytes.len() => {
                let step = &bytes[byte - byte % STEP..byte];
                before + step.iter().filter(|byte| begins_character(**byte)).count()
            }
            _ => self.characters,
        };
        (self.first_character + inside) as u64
    }

    /// The byte at which a character of the run begins; `None` if there are fewer characters.
    fn byte_at(&self, character: usize) -> Option<usize> {
        let step = self.marks.partition_point(|mark| *mark <= character);
        let step = step.checked_sub(1)?;
        let bytes = self.text.as_bytes().iter().enumerate();
        bytes
            .skip(step * STEP)
            .take(STEP)
            .filter(|(_, byte)| begins_character(**byte))
            .nth(character - self.marks[step])
            .map(|(at, _)| at)
    }
}

fn begins_character(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cited_text() -> CitedText<'static> {
        let mut text = CitedText::default();
        text.push(1, "Café.".into());
        text.push(3, "Über".into());
        text
    }

    #[test]
    fn a_byte_of_a_part_becomes_a_character_of_the_text() {
        let mut text = cited_text();
        let text = text.indexed();
        assert_eq!(text.character_in_part(1, 0), 0);
        assert_eq!(text.character_in_part(1, 6), 5);
        assert_eq!(text.character_in_part(3, 2), 6);
        assert_eq!(text.character_in_part(3, 5), 9);
    }

    #[test]
    fn an_index_into_no_text_part_counts_through_all_of_the_text() {
        let mut text = cited_text();
        let text = text.indexed();
        assert_eq!(text.character_in_part(0, 6), 5);
        assert_eq!(text.character_in_part(0, 8), 6);
        assert_eq!(text.character_in_part(0, 999), 9);
        assert_eq!(CitedText::default().indexed().character_in_part(0, 3), 0);
    }

    proptest! {
        /// As a search through all of the text would find them, also in text that came piece by piece.
        #[test]
        fn positions_are_those_of_a_plain_search(
            pieces in prop::collection::vec((0_usize..4, "[aé€😀]{0,90}"), 0..6),
            start in 0_usize..300,
            length in 0_usize..90,
        ) {
            let mut text = CitedText::default();
            let mut runs: Vec<(usize, String)> = Vec::new();
            let mut part = 0;
            for (step, piece) in &pieces {
                part += step;
                text.extend(part, piece);
                text.indexed();
                match runs.last_mut() {
                    Some((last, run)) if *last == part => run.push_str(piece),
                    _ => runs.push((part, piece.clone())),
                }
            }
            let text = text.indexed();
            let whole: String = runs.iter().map(|(_, run)| run.as_str()).collect();
            let begins = |at: &usize| whole.is_char_boundary(*at) && *at < whole.len();
            let expected = (0..start).filter(begins).count() as u64;
            prop_assert_eq!(text.character(start), expected);

            let mut rest = start;
            let holding = runs.iter().find(|(_, run)| {
                let characters = run.chars().count();
                let found = rest < characters;
                if !found {
                    rest -= characters;
                }
                found
            });
            let expected = holding.map(|(part, run)| {
                let text: String = run.chars().skip(rest).take(length).collect();
                (*part, text)
            });
            let found = text.segment(start as u64, (start + length) as u64);
            let found = found.map(|segment| (segment.part, segment.text.to_owned()));
            prop_assert_eq!(found, expected.filter(|(_, text)| !text.is_empty()));
        }
    }
}
