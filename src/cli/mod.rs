//! The command line: run, init, check, providers, import, account, key, usage, translate, mock, score, completions, man.

mod account;
mod config_file;
mod demo;
mod greeting;
mod health;
mod import;
mod key;
mod live;
mod logging;
mod manual;
mod output;
mod quick_start;
mod score;
mod store_session;
mod time_argument;
mod translate;
mod usage;

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::error::ErrorKind;
use clap::{Args, CommandFactory as _, Parser, Subcommand};

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
    #[command(flatten)]
    run: RunOptions,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the gateway (the default)
    Run(RunOptions),
    /// Write a commented config for the providers whose keys are in the environment
    Init(quick_start::InitOptions),
    /// Validate the config and print its routes
    Check {
        /// Print what this name of a model resolves to, instead of all routes
        #[arg(long, value_name = "NAME")]
        model: Option<String>,
        /// Also ask each upstream once for its list of models, and print what it answered
        #[arg(long, conflicts_with = "model")]
        live: bool,
    },
    /// Ask a running gateway whether it takes requests
    Health(health::HealthOptions),
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
    /// Score a gateway: what it loses between formats, what it adds, how it fails
    Score(Box<score::ScoreOptions>),
    /// Print the completions of the command line for a shell
    Completions(manual::CompletionOptions),
    /// Print the JSON Schema of the config, for editors
    Schema,
    /// Print the manual page, or write those of all commands
    Man(manual::ManualOptions),
}

#[derive(Debug, Default, Args)]
struct RunOptions {
    /// Without a config: where to listen [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Run the embedded demo, also where there is a config or a provider's key
    #[arg(long)]
    demo: bool,
}

/// Runs the command of the command line.
pub fn main() -> ExitCode {
    logging::start();
    let cli = Cli::parse();
    let (command, file) = (cli.command.unwrap_or(Command::Run(cli.run)), cli.config);
    if file.is_given() && !takes_config(&command) {
        let message = "init, health, providers, import, translate, mock, score, completions, schema and man take no config; leave out -c";
        Cli::command()
            .error(ErrorKind::ArgumentConflict, message)
            .exit();
    }
    let outcome = match command {
        Command::Run(options) => run(file, &options),
        Command::Init(options) => quick_start::init(&options),
        Command::Check { model, live } => check(file, model.as_deref(), live),
        Command::Health(options) => health::ask(&options),
        Command::Providers => print_providers(),
        Command::Import(options) => import::run(&options),
        Command::Account(command) => account::run(*command, file),
        Command::Key(command) => key::run(*command, file),
        Command::Usage(options) => usage::run(&options, file),
        Command::Translate(options) => translate::run(&options),
        Command::Mock { listen } => serve_mock(listen).map(|()| ExitCode::SUCCESS),
        Command::Score(options) => score::run(&options),
        Command::Completions(options) => manual::complete(&options, Cli::command()),
        Command::Schema => print_schema(),
        Command::Man(options) => manual::manual(&options, Cli::command()),
    };
    outcome.unwrap_or_else(|error| {
        output::note(&format!("omniglot: {error:#}"));
        ExitCode::FAILURE
    })
}

const fn takes_config(command: &Command) -> bool {
    !matches!(
        command,
        Command::Init(_)
            | Command::Health(_)
            | Command::Providers
            | Command::Import(_)
            | Command::Translate(_)
            | Command::Mock { .. }
            | Command::Score(_)
            | Command::Completions(_)
            | Command::Schema
            | Command::Man(_)
    )
}

fn print_providers() -> Result<ExitCode> {
    output::print(&config::provider_table())?;
    Ok(ExitCode::SUCCESS)
}

fn print_schema() -> Result<ExitCode> {
    let text = serde_json::to_string_pretty(&config::schema())?;
    output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn run(file: ConfigFile, options: &RunOptions) -> Result<ExitCode> {
    let is_given = file.is_given();
    let start = match file.path().filter(|_| is_given || !options.demo) {
        Some(_) if options.demo => {
            anyhow::bail!("the demo has a config of its own; leave out -c or --demo")
        }
        Some(path) if options.listen.is_some() => anyhow::bail!(
            "--listen is for a gateway without a config; set server.listen in {}",
            path.display()
        ),
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
        None => without_config(options)?,
    };
    server::run(start)?;
    Ok(ExitCode::SUCCESS)
}

/// The providers of the environment, or the demo where it has the key of none.
fn without_config(options: &RunOptions) -> Result<StartOptions> {
    let found = match options.demo {
        true => None,
        false => quick_start::start_options(options.listen)?,
    };
    found.map_or_else(|| demo::start_options(options.listen), Ok)
}

fn check(file: ConfigFile, model: Option<&str>, live: bool) -> Result<ExitCode> {
    let Some(path) = file.path() else {
        anyhow::bail!("there is no {DEFAULT_FILE} here: name a config with -c FILE");
    };
    let config = match load(&path) {
        Ok(config) => config,
        Err(code) => return Ok(code),
    };
    let text = match model {
        Some(name) => config::resolution(&config, name).map_err(anyhow::Error::msg)?,
        None => config::route_table(&config),
    };
    output::print(&text)?;
    if !live {
        return Ok(ExitCode::SUCCESS);
    }
    let asked = live::ask(config)?;
    output::print(&format!("\n{}", asked.table))?;
    Ok(match asked.is_good {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
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
