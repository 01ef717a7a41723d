//! The command line: run, check, providers, import, account, key, usage, translate, mock.

mod account;
mod config_file;
mod demo;
mod greeting;
mod import;
mod key;
mod logging;
mod output;
mod store_session;
mod time_argument;
mod translate;
mod usage;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::error::ErrorKind;
use clap::{CommandFactory as _, Parser, Subcommand};

use config_file::{ConfigFile, DEFAULT_FILE, load};
use greeting::listening;

use crate::config;
use crate::mock;
use crate::server::{self, StartOptions};

/// A model gateway: any client format to any backend format, under one API key.
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    config: ConfigFile,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway (the default)
    Run,
    /// Validate the config and print its routes
    Check {
        /// Print what this name of a model resolves to, instead of all routes
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
    },
    /// List the presets of `provider` for upstreams
    Providers,
    /// Write a config from that of another gateway
    Import(import::ImportOptions),
    /// Create, list, disable and enable the people who may sign in to the console
    #[command(subcommand)]
    Account(Box<account::AccountCommand>),
    /// Create, list, change and revoke the keys of the store
    #[command(subcommand)]
    Key(Box<key::KeyCommand>),
    /// Show usage and cost
    Usage(usage::UsageOptions),
    /// Translate a request, response, stream or error from stdin to stdout
    Translate(translate::TranslateOptions),
    /// Run a mock model backend: all formats and images on one port
    #[command(after_long_help = mock::HELP)]
    Mock {
        /// The address to listen on; port 0 picks a free port
        #[arg(long, default_value = "127.0.0.1:8090")]
        listen: SocketAddr,
    },
}

/// Runs the command of the command line.
pub fn main() -> ExitCode {
    logging::start();
    let cli = Cli::parse();
    let (command, file) = (cli.command.unwrap_or(Command::Run), cli.config);
    if file.is_given() && !takes_config(&command) {
        let message = "providers, import, translate and mock take no config; leave out -c";
        Cli::command()
            .error(ErrorKind::ArgumentConflict, message)
            .exit();
    }
    let outcome = match command {
        Command::Run => run(file),
        Command::Check { model } => check(file, model.as_deref()),
        Command::Providers => print_providers(),
        Command::Import(options) => import::run(&options),
        Command::Account(command) => account::run(*command, file),
        Command::Key(command) => key::run(*command, file),
        Command::Usage(options) => usage::run(&options, file),
        Command::Translate(options) => translate::run(&options),
        Command::Mock { listen } => serve_mock(listen).map(|()| ExitCode::SUCCESS),
    };
    outcome.unwrap_or_else(|error| {
        output::note(&format!("omniglot: {error:#}"));
        ExitCode::FAILURE
    })
}

const fn takes_config(command: &Command) -> bool {
    !matches!(
        command,
        Command::Providers | Command::Import(_) | Command::Translate(_) | Command::Mock { .. }
    )
}

fn print_providers() -> Result<ExitCode> {
    output::print(&config::provider_table())?;
    Ok(ExitCode::SUCCESS)
}

fn run(file: ConfigFile) -> Result<ExitCode> {
    let start = match file.path() {
        Some(path) => match load(&path) {
            Ok(config) => StartOptions {
                greeting: listening(&config),
                config,
                file: Some(path),
                mock: None,
                remove_at_exit: None,
            },
            Err(code) => return Ok(code),
        },
        None => demo::start_options()?,
    };
    server::run(start)?;
    Ok(ExitCode::SUCCESS)
}

fn check(file: ConfigFile, model: Option<&str>) -> Result<ExitCode> {
    let Some(path) = file.path() else {
        anyhow::bail!("there is no {DEFAULT_FILE} here: name a config with -c FILE");
    };
    Ok(match load(&path) {
        Ok(config) => {
            let text = match model {
                Some(name) => config::resolution(&config, name).map_err(anyhow::Error::msg)?,
                None => config::route_table(&config),
            };
            output::print(&text)?;
            ExitCode::SUCCESS
        }
        Err(code) => code,
    })
}

fn serve_mock(listen: SocketAddr) -> Result<()> {
    server::fd_limit::raise();
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(listen)
            .await
            .with_context(|| format!("cannot listen on {listen}: choose another with --listen"))?;
        let address = listener.local_addr()?;
        // A closed stdout is no reason not to serve.
        let _ = writeln!(
            std::io::stdout(),
            "omniglot mock listens on http://{address}"
        );
        let stop = async {
            // Without signals it runs until it is killed.
            let mut terminate =
                tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()).ok();
            match &mut terminate {
                Some(terminate) => tokio::select! {
                    _ = tokio::signal::ctrl_c() => {}
                    _ = terminate.recv() => {}
                },
                None => std::future::pending().await,
            }
        };
        mock::serve(listener, stop).await.context("the mock failed")
    })
}
