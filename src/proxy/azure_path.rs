//! The paths of Azure OpenAI, which its clients use: a deployment in the path is the model.

use std::borrow::Cow;

/// Below this prefix the endpoints of the chat, responses and images formats are found too.
const PREFIX: &str = "/openai/";

/// The endpoints that Azure has below a deployment.
const BELOW_DEPLOYMENTS: [&str; 2] = ["chat/completions", "images/generations"];

/// A path as the formats have it.
pub(super) struct PlainPath<'p> {
    pub path: Cow<'p, str>,
    /// The segment that names the deployment.
    pub deployment: Option<&'p str>,
}

/// Takes a path of Azure apart; every other path stays as it is.
pub(super) fn plain_path(path: &str) -> PlainPath<'_> {
    let as_written = PlainPath {
        path: path.into(),
        deployment: None,
    };
    let Some(rest) = path.strip_prefix(PREFIX) else {
        return as_written;
    };
    if let Some(below) = rest.strip_prefix("deployments/") {
        let (deployment, endpoint) = below.split_once('/').unwrap_or((below, ""));
        return match BELOW_DEPLOYMENTS.contains(&endpoint) {
            true => PlainPath {
                path: format!("/v1/{endpoint}").into(),
                deployment: Some(deployment),
            },
            false => as_written,
        };
    }
    let rest = rest.strip_prefix("v1/").unwrap_or(rest);
    match ["chat/completions", "responses", "images/", "models"]
        .iter()
        .any(|endpoint| rest.starts_with(endpoint))
    {
        true => PlainPath {
            path: format!("/v1/{rest}").into(),
            deployment: None,
        },
        false => as_written,
    }
}
