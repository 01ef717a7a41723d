//! What an upstream says of the usage of its response, and how much of the output that covers.

use crate::model::Usage;

/// The usage so far, by one event of a stream or by a whole response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportedUsage {
    pub usage: Usage,
    /// What of the output this report itself has counted; the rest of the usage may be that of earlier ones.
    pub counted: CountedOutput,
}

/// How much of the output that came before a report is counted in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CountedOutput {
    Nothing,
    Reasoning,
    Everything,
}

impl ReportedUsage {
    /// A report that counts the whole output, or nothing of it: a count of zero stands for an unknown one.
    pub fn of_whole(usage: Usage) -> ReportedUsage {
        ReportedUsage::of_parts(usage, usage.output)
    }

    /// A report with counts of earlier ones, which itself counts so much of the whole output.
    pub const fn of_parts(usage: Usage, output: u64) -> ReportedUsage {
        let counted = match output {
            0 => CountedOutput::Nothing,
            _ => CountedOutput::Everything,
        };
        ReportedUsage { usage, counted }
    }

    /// Tells whether nothing is left to be estimated of the output before it.
    pub fn counts_everything(self) -> bool {
        self.counted == CountedOutput::Everything
    }

    /// Adds what only earlier reports have counted: a later one without a count of the input or of the output takes nothing back.
    pub(super) fn after(self, earlier: Option<Usage>) -> Usage {
        let (mut usage, earlier) = (self.usage, earlier.unwrap_or_default());
        if usage.input == 0 {
            usage.input = earlier.input;
            usage.cached = earlier.cached;
            usage.cache_written = earlier.cache_written;
            usage.audio_input = earlier.audio_input;
            usage.image_input = earlier.image_input;
        }
        if usage.output == 0 {
            usage.output = earlier.output;
            usage.thinking = earlier.thinking;
            usage.audio_output = earlier.audio_output;
            usage.image_output = earlier.image_output;
        }
        usage
    }
}
