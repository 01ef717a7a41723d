//! What the operations work on: the store, the settings, and the counts of failed sign-ins.

use std::sync::Arc;

use super::passwords::Passwords;
use crate::access::AttemptBuckets;
use crate::config::ConsoleConfig;
use crate::runtime::Runtime;
use crate::store::Store;

/// How many sign-ins of a network may fail at once, and in a minute.
const FAILURES_PER_NETWORK: u64 = 20;
/// The same for one account, whatever networks they come from. It is only a delay: nobody is locked out.
const FAILURES_PER_LOGIN: u64 = 10;

/// What the operations work on.
pub struct Console {
    pub store: Store,
    pub settings: ConsoleConfig,
    /// `None`: on the command line, where no gateway runs.
    pub runtime: Option<Arc<Runtime>>,
    pub(super) passwords: Passwords,
    pub(super) failures_by_network: AttemptBuckets,
    pub(super) failures_by_login: AttemptBuckets,
}

impl Console {
    pub fn new(store: Store, settings: ConsoleConfig, runtime: Option<Arc<Runtime>>) -> Console {
        Console {
            store,
            settings,
            runtime,
            passwords: Passwords::default(),
            failures_by_network: AttemptBuckets::new(FAILURES_PER_NETWORK),
            failures_by_login: AttemptBuckets::new(FAILURES_PER_LOGIN),
        }
    }

    /// The URL of a path of the console, as browsers reach it; never from a request's `Host`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.settings.public_url)
    }
}
