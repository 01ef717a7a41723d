//! What the operations work on: the store, the settings, and the counts of failed sign-ins.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;

use super::blocking_work::BlockingWork;
use super::gateway_client::GatewayAccess;
use super::identity::IdentityProvider;
use super::mail::Mailer;
use super::passwords::Passwords;
use super::refusal::Refusal;
use super::webhook::WebhookClient;
use crate::access::AttemptBuckets;
use crate::config::ConsoleConfig;
use crate::credentials::TokenClient;
use crate::runtime::Runtime;
use crate::store::Store;

/// How many sign-ins of a network may fail at once, and in a minute.
const FAILURES_PER_NETWORK: u64 = 20;
/// The same for one account from one network. It is only a delay: nobody is locked out.
const FAILURES_PER_LOGIN: u64 = 10;
/// The same for one account, whatever networks they come from: far more, so that who knows a username cannot keep its
/// person out.
const FAILURES_OF_LOGIN: u64 = 1000;

/// How many codes of a second factor may be wrong at once; one more after each interval. There are only a million codes.
const WRONG_CODES: u64 = 5;
const CODE_INTERVAL: Duration = Duration::from_secs(300);
/// How many messages a network may ask for at once, and in a minute.
const MAILS_PER_NETWORK: u64 = 10;
/// How many may go to one address, or for one account, at once; one more after each interval.
const MAILS_AT_ONCE: u64 = 3;
const MAIL_INTERVAL: Duration = Duration::from_secs(300);

/// How many alerts go to one address by mail at once, and how many test messages; one more after each interval.
const ALERTS_PER_ADDRESS: u64 = 20;
pub(super) const ALERT_INTERVAL: Duration = Duration::from_secs(180);
/// How many test messages a person may send at once; one more after each interval.
const ALERT_TESTS: u64 = 5;
const ALERT_TEST_INTERVAL: Duration = Duration::from_secs(60);

/// How many translations a network may ask for at once, and in a minute.
const EXPLORATIONS_PER_NETWORK: u64 = 60;
/// How many are computed at once.
const EXPLORATIONS_AT_ONCE: usize = 2;

/// What the operations work on.
pub struct Console {
    pub store: Store,
    pub settings: ConsoleConfig,
    /// `None`: on the command line, where no gateway runs.
    pub runtime: Option<Arc<Runtime>>,
    /// How it asks the gateway itself; `None`: it cannot.
    pub(super) gateway: Option<GatewayAccess>,
    /// The machine and the process, for people who have several gateways.
    pub(super) gateway_name: String,
    pub(super) passwords: Passwords,
    pub(super) failures_by_network: AttemptBuckets,
    /// By login and network.
    pub(super) failures_by_login: AttemptBuckets,
    /// By login, from all networks.
    pub(super) failures_of_login: AttemptBuckets,
    pub(super) failures_by_code: AttemptBuckets,
    pub(super) identity: Vec<IdentityProvider>,
    mailer: Option<Mailer>,
    pub(super) mails_by_network: AttemptBuckets,
    pub(super) mails_by_address: AttemptBuckets,
    mails_by_person: AttemptBuckets,
    pub(super) webhooks: WebhookClient,
    /// By address, and whether it is a test.
    pub(super) alerts_by_address: AttemptBuckets,
    pub(super) alert_tests: AttemptBuckets,
    /// Notified when there is another alert, or one is another.
    pub(super) alerts_changed: Notify,
    pub(super) explorations: BlockingWork,
    pub(super) explorations_by_network: AttemptBuckets,
}

impl Console {
    pub fn new(store: Store, settings: ConsoleConfig, runtime: Option<Arc<Runtime>>) -> Console {
        let mailer = settings.mail.as_ref().map(Mailer::new);
        let mailer = mailer.transpose().unwrap_or_else(|reason| {
            log::error!("{reason}");
            None
        });
        let client = Arc::new(TokenClient::default());
        let identity = settings.identity.iter().cloned();
        let identity = identity.map(|provider| IdentityProvider::new(provider, client.clone()));
        Console {
            identity: identity.collect(),
            mailer,
            failures_by_code: AttemptBuckets::with_interval(WRONG_CODES, CODE_INTERVAL),
            mails_by_network: AttemptBuckets::new(MAILS_PER_NETWORK),
            mails_by_address: AttemptBuckets::with_interval(MAILS_AT_ONCE, MAIL_INTERVAL),
            mails_by_person: AttemptBuckets::with_interval(MAILS_AT_ONCE, MAIL_INTERVAL),
            webhooks: WebhookClient::default(),
            alerts_by_address: AttemptBuckets::with_interval(ALERTS_PER_ADDRESS, ALERT_INTERVAL),
            alert_tests: AttemptBuckets::with_interval(ALERT_TESTS, ALERT_TEST_INTERVAL),
            alerts_changed: Notify::new(),
            explorations: BlockingWork::new(EXPLORATIONS_AT_ONCE),
            explorations_by_network: AttemptBuckets::new(EXPLORATIONS_PER_NETWORK),
            store,
            settings,
            runtime,
            gateway: None,
            gateway_name: gateway_name(),
            passwords: Passwords::default(),
            failures_by_network: AttemptBuckets::new(FAILURES_PER_NETWORK),
            failures_by_login: AttemptBuckets::new(FAILURES_PER_LOGIN),
            failures_of_login: AttemptBuckets::new(FAILURES_OF_LOGIN),
        }
    }

    /// Lets it ask the gateway of this process, as clients do.
    pub fn with_gateway(self, gateway: Option<GatewayAccess>) -> Console {
        Console { gateway, ..self }
    }

    /// What sends mail, where the config has it.
    pub(super) fn mailer(&self) -> Result<&Mailer, Refusal> {
        self.mailer.as_ref().ok_or(Refusal::MailOff)
    }

    /// Counts a message for an account, or refuses it for a while: somebody may know several logins of one.
    pub(super) fn take_mail_of(&self, person: &str) -> Result<(), Refusal> {
        let taken = self.mails_by_person.take(person, Instant::now());
        taken.map_err(Refusal::TooManyAttempts)
    }

    /// The URL of a path of the console, as browsers reach it; never from a request's `Host`.
    pub fn url(&self, path: &str) -> String {
        format!("{}{path}", self.settings.public_url)
    }
}

fn gateway_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname");
    let host = host.ok().or_else(|| std::env::var("HOSTNAME").ok());
    let host = host.as_deref().map_or("", str::trim);
    let host = if host.is_empty() { "localhost" } else { host };
    format!("{host} ({})", std::process::id())
}
