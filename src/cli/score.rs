//! `score`: what a gateway loses between formats, as a scorecard.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use clap::Args;
use http::Uri;
use uuid::Uuid;

use super::output;
use crate::score::{
    Driver, PeerGateway, PublishedGateway, PublishedResult, Scenario, ScoreCount, Scorecard,
    ScoredGateway, StrictUpstream, WireFormat, measure, page,
};

const DEFAULT_UPSTREAM: &str = "127.0.0.1:9099";
const DEFAULT_LISTEN: &str = "127.0.0.1:4000";
const DEFAULT_MODELS: &str =
    "chat=score-chat,messages=score-messages,native=score-native,responses=score-responses";

#[derive(Debug, Args)]
pub(super) struct ScoreOptions {
    /// The gateway to score, such as http://127.0.0.1:4000 [default: one of this binary, started for it]
    #[arg(long, value_name = "URL")]
    url: Option<Uri>,
    /// The key for the gateway
    #[arg(long, value_name = "KEY", default_value = "omniglot-score-key")]
    key: String,
    /// A header that clients send too; may be given several times
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = parse_header)]
    headers: Vec<(String, String)>,
    /// The models of the gateway, by the format of their upstreams
    #[arg(long, value_name = "FORMAT=ID,…", default_value = DEFAULT_MODELS)]
    models: String,
    /// Where the strict upstream listens, which the gateway sends its requests to [default: 127.0.0.1:9099]
    #[arg(long, value_name = "ADDR")]
    upstream: Option<SocketAddr>,
    /// Print the config of a gateway for this: omniglot, litellm, portkey, bifrost, new-api or agentgateway
    #[arg(long, value_name = "GATEWAY", value_parser = parse_peer)]
    print_config: Option<PeerGateway>,
    /// Print everything as JSON
    #[arg(long, conflicts_with = "markdown")]
    json: bool,
    /// Print a section of a Markdown page, without times
    #[arg(long)]
    markdown: bool,
    /// Also write a page with the results to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Also write what was found into this file of published results, beside the words that it has
    #[arg(long, value_name = "FILE")]
    publish: Option<PathBuf>,
    /// Print the page of the published results in this folder, and score nothing
    #[arg(long, value_name = "DIR")]
    page: Option<PathBuf>,
    /// Run the scenarios whose names contain this; may be given several times
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// A folder with more scenarios
    #[arg(long, value_name = "DIR")]
    scenarios: Option<PathBuf>,
    /// Exit with 1 if less than this percentage of the runs lose nothing
    #[arg(long, value_name = "PERCENT")]
    min: Option<f64>,
    /// The process of the gateway, whose CPU time is measured
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// What the gateway is called in the report [default: its URL]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
}

fn parse_peer(name: &str) -> Result<PeerGateway, String> {
    match name {
        "omniglot" => Ok(PeerGateway::Omniglot),
        "litellm" => Ok(PeerGateway::Litellm),
        "portkey" => Ok(PeerGateway::Portkey),
        "bifrost" => Ok(PeerGateway::Bifrost),
        "new-api" => Ok(PeerGateway::NewApi),
        "agentgateway" => Ok(PeerGateway::Agentgateway),
        _ => Err("use omniglot, litellm, portkey, bifrost, new-api or agentgateway".to_owned()),
    }
}

fn parse_header(header: &str) -> Result<(String, String), String> {
    let (name, value) = header.split_once(':').ok_or("write NAME: VALUE")?;
    // A value may stand on several lines of a shell.
    let words: Vec<&str> = value.split_whitespace().collect();
    Ok((name.trim().to_lowercase(), words.join(" ")))
}

/// Puts a result into its file; the words in it stay.
fn publish(file: &Path, card: &Scorecard) -> Result<()> {
    let mut published = match std::fs::read_to_string(file) {
        Ok(text) => read_published(file, &text)?,
        Err(_) => PublishedGateway {
            gateway: card.gateway.clone(),
            ..PublishedGateway::default()
        },
    };
    published.result = PublishedResult::of(card);
    let text = serde_json::to_string_pretty(&published)? + "\n";
    std::fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

fn read_published(file: &Path, text: &str) -> Result<PublishedGateway> {
    serde_json::from_str(text).with_context(|| format!("{}: no published result", file.display()))
}

/// The page of a folder: this gateway first, the others by their names.
fn published_page(folder: &Path) -> Result<String> {
    let entries =
        std::fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in entries {
        files.push(entry?.path());
    }
    files.retain(|file| file.extension().is_some_and(|end| end == "json"));
    files.sort_by_key(|file| (!file.ends_with("omniglot.json"), file.clone()));
    let mut gateways = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file)
            .with_context(|| format!("cannot read {}", file.display()))?;
        gateways.push(read_published(file, &text)?);
    }
    Ok(page(&gateways))
}

pub(super) fn run(options: &ScoreOptions) -> Result<ExitCode> {
    let upstream = match (options.upstream, &options.url) {
        (Some(upstream), _) => upstream,
        // Nobody else has to know the address.
        (None, None) if options.print_config.is_none() => ([127, 0, 0, 1], 0).into(),
        (None, _) => DEFAULT_UPSTREAM.parse()?,
    };
    if let Some(peer) = options.print_config {
        let listen = options.listen()?;
        output::print(peer.config(upstream, listen, &options.key).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(folder) = &options.page {
        output::print(published_page(folder)?.trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let scenarios = options.chosen_scenarios()?;
    let listener = TcpListener::bind(upstream)
        .with_context(|| format!("cannot listen on {upstream}: choose another with --upstream"))?;
    listener.set_nonblocking(true)?;
    let upstream = listener.local_addr()?;
    let own = match options.url {
        Some(_) => None,
        None => Some(OwnGateway::start(upstream, &options.key)?),
    };
    let runtime = tokio::runtime::Runtime::new().context("cannot start the runtime")?;
    let card = runtime.block_on(options.score(scenarios, listener, own.as_ref()))?;
    drop(own);
    options.print(&card)?;
    let is_below = options.min.is_some_and(|min| card.total().percent() < min);
    Ok(match is_below || card.total() == ScoreCount::default() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

impl ScoreOptions {
    /// Where a gateway listens whose config is printed.
    fn listen(&self) -> Result<SocketAddr> {
        let authority = self.url.as_ref().and_then(Uri::authority);
        let address = authority.map_or(DEFAULT_LISTEN, |authority| authority.as_str());
        address
            .parse()
            .with_context(|| format!("{address}: give --url an IP address and a port"))
    }

    async fn score(
        &self,
        scenarios: Vec<Scenario>,
        listener: TcpListener,
        own: Option<&OwnGateway>,
    ) -> Result<Scorecard> {
        let address = listener.local_addr()?;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let upstream = Arc::new(StrictUpstream::default());
        let serving = tokio::spawn(upstream.clone().serve(listener));
        let url = match (&self.url, own) {
            (Some(url), _) => url.clone(),
            (None, Some(own)) => own.wait_until_ready().await?,
            (None, None) => anyhow::bail!("there is no gateway"),
        };
        if url.scheme_str() != Some("http") {
            anyhow::bail!("{url}: the URL must begin with http://");
        }
        let upstream_url: Uri = format!("http://{address}").parse()?;
        let is_direct = url.authority() == upstream_url.authority();
        let gateway = ScoredGateway {
            only_diagonal: is_direct,
            is_direct,
            models: self.parsed_models()?,
            key: self.key.clone(),
            headers: self.headers.clone(),
            url,
        };
        let name = self.name.clone().unwrap_or_else(|| match own {
            Some(_) => format!("omniglot {}", env!("CARGO_PKG_VERSION")),
            None => gateway.url.to_string(),
        });
        let driver = Driver::new(gateway, upstream);
        let runs = driver.clone().run_all(&scenarios).await;
        let pid = self.pid.or(own.map(|own| own.child.id()));
        let measured = measure(&driver, &upstream_url, pid).await;
        serving.abort();
        Ok(Scorecard {
            gateway: name,
            runs,
            scenarios: scenarios
                .into_iter()
                .map(|scenario| (scenario.name, scenario.about))
                .collect(),
            measured,
        })
    }

    fn parsed_models(&self) -> Result<BTreeMap<WireFormat, String>> {
        let mut models = BTreeMap::new();
        for entry in self.models.split(',').filter(|entry| !entry.is_empty()) {
            let named = entry
                .split_once('=')
                .and_then(|(format, id)| Some((WireFormat::from_name(format)?, id)));
            let (format, id) =
                named.with_context(|| format!("--models: {entry:?} is not FORMAT=ID"))?;
            models.insert(format, id.to_owned());
        }
        Ok(models)
    }

    fn chosen_scenarios(&self) -> Result<Vec<Scenario>> {
        let mut scenarios = Scenario::all();
        if let Some(folder) = &self.scenarios {
            let entries = std::fs::read_dir(folder)
                .with_context(|| format!("cannot read {}", folder.display()))?;
            for entry in entries {
                let path = entry?.path();
                let text = std::fs::read_to_string(&path)
                    .with_context(|| format!("cannot read {}", path.display()))?;
                let parsed = Scenario::parse(&text);
                scenarios.push(
                    parsed.map_err(|reason| anyhow::anyhow!("{}: {reason}", path.display()))?,
                );
            }
        }
        let is_chosen =
            |scenario: &Scenario| self.only.iter().any(|part| scenario.name.contains(part));
        scenarios.retain(|scenario| self.only.is_empty() || is_chosen(scenario));
        match scenarios.is_empty() {
            true => anyhow::bail!("--only: no scenario has such a name"),
            false => Ok(scenarios),
        }
    }

    fn print(&self, card: &Scorecard) -> Result<()> {
        if let Some(file) = &self.html {
            std::fs::write(file, card.html())
                .with_context(|| format!("cannot write {}", file.display()))?;
        }
        if let Some(file) = &self.publish {
            publish(file, card)?;
        }
        let text = match (self.json, self.markdown) {
            (true, _) => serde_json::to_string_pretty(&card.json())?,
            (_, true) => card.markdown(),
            _ => card.text(),
        };
        output::print(text.trim_end())?;
        Ok(())
    }
}

/// A gateway of this binary, in a process of its own; it ends with this value.
struct OwnGateway {
    child: Child,
    listen: SocketAddr,
    config: PathBuf,
}

impl OwnGateway {
    fn start(upstream: SocketAddr, key: &str) -> Result<OwnGateway> {
        let listen = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let config = std::env::temp_dir().join(format!("omniglot-score-{}.yaml", Uuid::now_v7()));
        std::fs::write(&config, PeerGateway::Omniglot.config(upstream, listen, key))
            .with_context(|| format!("cannot write {}", config.display()))?;
        let program = std::env::current_exe().context("cannot find this program")?;
        let child = Command::new(program)
            .args(["run", "-c"])
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start the gateway")?;
        Ok(OwnGateway {
            child,
            listen,
            config,
        })
    }

    async fn wait_until_ready(&self) -> Result<Uri> {
        for _ in 0..400 {
            if tokio::net::TcpStream::connect(self.listen).await.is_ok() {
                return Ok(format!("http://{}", self.listen).parse()?);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!(
            "the gateway did not start: try `omniglot run -c {}`",
            self.config.display()
        )
    }
}

impl Drop for OwnGateway {
    fn drop(&mut self) {
        // It may have ended, and the file may be gone.
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(&self.config);
    }
}
