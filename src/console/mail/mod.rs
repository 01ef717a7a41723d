//! Mail: composed in the language of whoever caused it, queued, and sent beside the requests.

mod message;

pub use message::MailText;

use std::sync::Arc;
use std::time::Duration;

use lettre::message::Mailbox;
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{
    Address, AsyncFileTransport, AsyncSmtpTransport, AsyncTransport as _, Message, Tokio1Executor,
};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::config::{MailConfig, MailRoute, SmtpSecurity, SmtpServer};

/// How many messages may wait; those beyond are lost, and logged.
const MAX_WAITING: usize = 256;
/// How many are sent at once, each on a connection of its own.
const AT_ONCE: usize = 2;
/// For one exchange with the server.
const TIMEOUT: Duration = Duration::from_secs(20);
/// The pauses before a message is tried again.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(20),
    Duration::from_secs(120),
];

/// Sends mail.
#[derive(Clone)]
pub struct Mailer {
    sender: Mailbox,
    route: Arc<Route>,
    waiting: Arc<Semaphore>,
    sending: Arc<Semaphore>,
}

enum Route {
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
    Folder(AsyncFileTransport<Tokio1Executor>),
}

/// Why a message was not sent, and whether it may be tried again.
struct Unsent {
    reason: String,
    is_lasting: bool,
}

impl Mailer {
    /// Fails where the address of the sender or the TLS of the server cannot be used.
    pub fn new(settings: &MailConfig) -> Result<Mailer, String> {
        let address: Address =
            settings.from.address.parse().map_err(|error| {
                format!("console.mail.from: {error}: {}", settings.from.address)
            })?;
        let route = match &settings.route {
            MailRoute::Smtp(server) => Route::Smtp(transport(server)?),
            MailRoute::Folder(path) => Route::Folder(AsyncFileTransport::new(path)),
        };
        Ok(Mailer {
            sender: Mailbox::new(settings.from.name.clone(), address),
            route: Arc::new(route),
            waiting: Arc::new(Semaphore::new(MAX_WAITING)),
            sending: Arc::new(Semaphore::new(AT_ONCE)),
        })
    }

    /// Queues a message. Nobody waits for it: how long a server takes would tell whether there was one.
    pub fn send(&self, to: &str, text: &MailText) {
        let message = match text.compose(&self.sender, to) {
            Ok(message) => message,
            Err(reason) => {
                log::error!("mail ({}): it cannot be composed: {reason}", text.kind);
                return;
            }
        };
        let Ok(place) = self.waiting.clone().try_acquire_owned() else {
            log::error!(
                "mail ({}): {MAX_WAITING} messages wait already, this one is lost",
                text.kind
            );
            return;
        };
        let (mailer, kind) = (self.clone(), text.kind);
        tokio::spawn(async move {
            let _place = place;
            mailer.deliver(message, kind).await;
        });
    }

    /// Sends a message once, and waits for that. An error says why it was not sent.
    pub async fn send_now(&self, to: &str, text: &MailText) -> Result<(), String> {
        let message = text.compose(&self.sender, to)?;
        let sent = self.send_once(message).await;
        sent.map_err(|unsent| unsent.reason)
    }

    /// Sends a message, and tries again where that may help.
    async fn deliver(&self, message: Message, kind: &'static str) {
        let mut pauses = PAUSES.into_iter();
        loop {
            let unsent = match self.send_once(message.clone()).await {
                Ok(()) => {
                    log::info!("mail ({kind}): sent");
                    return;
                }
                Err(unsent) => unsent,
            };
            let pause = pauses.next().filter(|_| !unsent.is_lasting);
            let Some(pause) = pause else {
                log::error!("mail ({kind}): not sent: {}", unsent.reason);
                return;
            };
            log::warn!(
                "mail ({kind}): {}; it is tried again in {} s",
                unsent.reason,
                pause.as_secs()
            );
            sleep(pause).await;
        }
    }

    async fn send_once(&self, message: Message) -> Result<(), Unsent> {
        let _permit = self.sending.acquire().await;
        match &*self.route {
            Route::Smtp(server) => match server.send(message).await {
                Ok(_) => Ok(()),
                Err(error) => Err(Unsent {
                    is_lasting: error.is_permanent(),
                    reason: error.to_string(),
                }),
            },
            Route::Folder(folder) => match folder.send(message).await {
                Ok(_) => Ok(()),
                Err(error) => Err(Unsent {
                    is_lasting: false,
                    reason: error.to_string(),
                }),
            },
        }
    }
}

fn transport(server: &SmtpServer) -> Result<AsyncSmtpTransport<Tokio1Executor>, String> {
    let parameters = || {
        let parameters = TlsParameters::new(server.host.clone());
        parameters.map_err(|error| format!("console.mail.smtp: {error}"))
    };
    let builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(&server.host);
    let mut builder = builder
        .port(server.port)
        .timeout(Some(TIMEOUT))
        .tls(match server.security {
            SmtpSecurity::Tls => Tls::Wrapper(parameters()?),
            SmtpSecurity::StartTls => Tls::Required(parameters()?),
            SmtpSecurity::Plain => Tls::None,
        });
    if let Some(login) = &server.login {
        let (user, password) = (login.user.clone(), login.password.expose().to_owned());
        builder = builder.credentials(Credentials::new(user, password));
    }
    Ok(builder.build())
}
