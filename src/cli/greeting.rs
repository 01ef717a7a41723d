//! What the start of a gateway says.

use crate::config::Config;

/// The addresses for clients.
pub(super) fn listening(config: &Config) -> String {
    let addresses: Vec<String> = config
        .server
        .listen
        .iter()
        .map(|listen| {
            let scheme = if listen.tls.is_some() {
                "https"
            } else {
                "http"
            };
            format!("{scheme}://{}", listen.addr)
        })
        .collect();
    format!("omniglot listens on {}", addresses.join(", "))
}
