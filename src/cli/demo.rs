//! The embedded demo: a mock backend, a store in a temporary folder, and a console with a link for its administrator.

use std::fs::DirBuilder;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use uuid::Uuid;

use super::greeting::listening;
use crate::config::{self, Config, DEMO_KEY};
use crate::console::operations::people::{self, PersonInput};
use crate::console::{Console, ConsoleCall};
use crate::server::StartOptions;
use crate::store::{PersonRole, Store};

/// The username of the administrator of the demo.
const ADMINISTRATOR: &str = "demo";

pub(super) fn start_options(listen: Option<SocketAddr>) -> Result<StartOptions> {
    let mock = TcpListener::bind("127.0.0.1:0").context("cannot open a port for the mock")?;
    mock.set_nonblocking(true)?;
    let folder = new_folder()?;
    let mut config = config::demo(mock.local_addr()?, &folder);
    if let (Some(listen), Some(first)) = (listen, config.server.listen.first_mut()) {
        first.addr = listen;
    }
    let greeting = greeting(&config)?;
    Ok(StartOptions {
        config,
        file: None,
        mock: Some(mock),
        remove_at_exit: Some(folder),
        greeting,
    })
}

/// A new folder that only its owner can read.
fn new_folder() -> Result<PathBuf> {
    let folder = std::env::temp_dir().join(format!("omniglot-demo-{}", Uuid::now_v7()));
    let made = DirBuilder::new().mode(0o700).create(&folder);
    made.with_context(|| format!("cannot create {} for the demo", folder.display()))?;
    Ok(folder)
}

fn greeting(config: &Config) -> Result<String> {
    let address = config.server.listen.first().map(|listen| listen.addr);
    let address = address.context("the demo has no listener")?;
    let models: Vec<&str> = config
        .models
        .iter()
        .map(|model| model.id.as_str())
        .collect();
    Ok(format!(
        "{}\n\nThis is the embedded demo: a mock backend in this process, no provider, no network.\n\
         Models: {}\n\nThe console, with a link that works once:\n\n  {}\n\nTry it:\n\n  \
         curl http://{address}/v1/chat/completions \\\n    \
         -H 'authorization: Bearer {DEMO_KEY}' \\\n    -H 'content-type: application/json' \\\n    \
         -d '{{\"model\":\"demo-chat\",\"messages\":[{{\"role\":\"user\",\"content\":\"Hello\"}}]}}'\n",
        listening(config),
        models.join(", "),
        console_link(config)?,
    ))
}

/// The link with which the administrator of the demo chooses a password.
fn console_link(config: &Config) -> Result<String> {
    let store = config.store.as_ref().context("the demo has no store")?;
    let settings = config.console.clone().context("the demo has no console")?;
    let tasks = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    tasks.block_on(async {
        let store = Store::open(store)
            .await
            .context("cannot use the store of the demo")?;
        let call = ConsoleCall::on_command_line(Arc::new(Console::new(store, settings, None)));
        let input = PersonInput {
            handle: ADMINISTRATOR.to_owned(),
            display: "Demo".to_owned(),
            email: String::new(),
        };
        let made = people::create_person(&call, input, PersonRole::Admin).await?;
        Ok(made.link.url)
    })
}
