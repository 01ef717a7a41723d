//! A journal of usage records on disk: they wait there until the store has them, so that no request waits for a database.
//!
//! A record is appended with one write before the last byte of its response is sent, and flushed to the
//! store in the background. Each thread appends to a segment of its own; the flusher closes segments,
//! sends their records to the [`UsageSink`], and deletes them. Records that were flushed but not yet deleted when
//! the process ended are flushed again: the sink knows every record by its id.

mod flusher;
mod log_limiter;
mod private_file;
mod record_line;
mod segment_file;
mod segment_reader;
mod segment_set;
mod segment_writer;
mod usage_journal;

pub use flusher::{Flusher, run_background};
pub use log_limiter::LogLimiter;
pub use usage_journal::{Journal, JournalStatus, UsageSink};

#[cfg(test)]
mod tests;
