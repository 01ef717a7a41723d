//! Asks each upstream once, for `check --live`: whether it is reached, takes the credentials, and lists the models.

use std::sync::Arc;

use pingora_core::connectors::ConnectorOptions;
use pingora_core::server::configuration::ServerConf;
use tokio::task::JoinSet;

use super::background_client::BackgroundClient;
use super::listed_models::{ListFailure, list_models};
use crate::proxy::upstream::redact;
use crate::runtime::{Runtime, Upstream};

/// What an upstream answered when it was asked for its list of models.
pub struct LiveAnswer {
    pub upstream: Arc<str>,
    pub url: String,
    pub models: Result<Vec<String>, ListFailure>,
}

/// Asks all upstreams at the same time; the answers are in the order of the config.
pub async fn ask_upstreams(runtime: &Runtime) -> Vec<LiveAnswer> {
    let options = ConnectorOptions::from_server_conf(&ServerConf::default());
    let client = Arc::new(BackgroundClient::new(options));
    let snapshot = runtime.snapshot();
    let mut asking = JoinSet::new();
    for (place, upstream) in snapshot.upstreams.iter().enumerate() {
        let (client, upstream) = (client.clone(), upstream.clone());
        asking.spawn(async move { (place, ask(&client, &upstream).await) });
    }
    let mut answers = asking.join_all().await;
    answers.sort_by_key(|(place, _)| *place);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

async fn ask(client: &BackgroundClient, upstream: &Upstream) -> LiveAnswer {
    let models = list_models(client, upstream).await;
    let path = upstream.format.model_list_path(None);
    LiveAnswer {
        upstream: upstream.name.clone(),
        url: format!("{}{path}", upstream.base),
        models: models.map_err(|failure| match failure {
            ListFailure::Failed(reason) => {
                ListFailure::Failed(redact::redact_log(upstream, &reason).into_owned())
            }
            status => status,
        }),
    }
}
