//! An attempt to sign in: it counts as failed from its beginning, and is given back when it succeeds.

use std::net::IpAddr;
use std::time::Instant;

use crate::access::client_network;
use crate::console::actor::ConsoleCall;
use crate::console::refusal::Refusal;
use crate::console::state::Console;

/// An attempt that is counted. One whose client leaves before its end has failed.
pub(super) struct SignInAttempt<'a> {
    console: &'a Console,
    network: Option<IpAddr>,
    /// The id of the person who is tried; what was typed, where there is none.
    login: Option<String>,
}

impl<'a> SignInAttempt<'a> {
    /// Counts an attempt of a network, or refuses it for a while after too many that failed.
    pub(super) fn begin(call: &'a ConsoleCall) -> Result<SignInAttempt<'a>, Refusal> {
        let network = call.remote.map(client_network);
        let failures = &call.console.failures_by_network;
        let taken = failures.take(network, Instant::now());
        taken.map_err(Refusal::TooManyAttempts)?;
        Ok(SignInAttempt {
            console: &call.console,
            network,
            login: None,
        })
    }

    /// Counts it for a login as well: few for the network, and far more for all networks together, so that nobody
    /// keeps a person out from elsewhere.
    pub(super) fn of_login(mut self, login: &str) -> Result<SignInAttempt<'a>, Refusal> {
        let now = Instant::now();
        let (console, network) = (self.console, self.network);
        let taken = console.failures_by_login.take((login, network), now);
        let taken = taken.and_then(|()| {
            let taken = console.failures_of_login.take(login, now);
            taken.inspect_err(|_| console.failures_by_login.give_back((login, network)))
        });
        match taken {
            Ok(()) => {
                self.login = Some(login.to_owned());
                Ok(self)
            }
            Err(wait) => {
                self.give_back();
                Err(Refusal::TooManyAttempts(wait))
            }
        }
    }

    /// It has not failed.
    pub(super) fn give_back(self) {
        let (console, network) = (self.console, self.network);
        console.failures_by_network.give_back(network);
        if let Some(login) = &self.login {
            console.failures_by_login.give_back((&**login, network));
            console.failures_of_login.give_back(&**login);
        }
    }
}
