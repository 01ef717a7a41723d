//! Checks the order of every decoder's events: `Start ( Open Delta* Close | Finish | Usage )* End`.

use std::collections::BTreeSet;

use crate::model::{Delta, Event};

/// The state of a stream of events.
#[derive(Debug, Default)]
pub struct Grammar {
    started: bool,
    pub ended: bool,
    open: BTreeSet<u32>,
}

impl Grammar {
    pub fn check(&mut self, event: &Event<'_>) {
        assert!(!self.ended, "{event:?} after the end");
        assert_eq!(
            self.started,
            !matches!(event, Event::Start { .. }),
            "{event:?}"
        );
        match event {
            Event::Start { .. } => self.started = true,
            Event::Open { choice, .. } => assert!(self.open.insert(*choice), "{event:?}"),
            Event::Close { choice } => assert!(self.open.remove(choice), "{event:?}"),
            Event::Delta {
                delta: Delta::Citation(_) | Delta::Logprob(_),
                ..
            } => {}
            Event::Delta { choice, .. } => assert!(self.open.contains(choice), "{event:?}"),
            Event::Finish { choice, .. } => assert!(!self.open.contains(choice), "{event:?}"),
            Event::Usage(_) => {}
            Event::End => {
                assert!(self.open.is_empty(), "{:?} still open", self.open);
                self.ended = true;
            }
        }
    }
}
