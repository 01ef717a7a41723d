//! Entries of LiteLLM for models of Azure, Vertex AI and Bedrock: our presets, with what these need.

use serde_json::{Map, Value};

use super::config_text::{mapping, scalar};
use super::value::{text, yaml_text};

/// The preset of a cloud, its settings and the upstream's own name for the model.
pub(super) struct CloudBackend {
    pub preset: &'static str,
    pub settings: Vec<(&'static str, String)>,
    pub model: String,
}

/// Providers of LiteLLM that are clouds.
pub(super) const CLOUDS: [&str; 6] = [
    "azure",
    "azure_ai",
    "vertex_ai",
    "vertex_ai_beta",
    "bedrock",
    "bedrock_mantle",
];

/// Parameters that are read here.
pub(super) const PARAMETERS: [&str; 18] = [
    "azure_ad_token",
    "tenant_id",
    "client_id",
    "client_secret",
    "azure_scope",
    "vertex_project",
    "vertex_location",
    "vertex_credentials",
    "aws_region_name",
    "aws_access_key_id",
    "aws_secret_access_key",
    "aws_session_token",
    "aws_profile_name",
    "aws_role_name",
    "aws_session_name",
    "aws_external_id",
    "aws_bedrock_runtime_endpoint",
    "vertex_ai_project",
];

/// Returns the preset for a model of a cloud. `None`: the provider is none; `Err`: why there is no preset.
pub(super) fn of(
    provider: &str,
    model: &str,
    parameters: &Map<String, Value>,
) -> Option<Result<CloudBackend, String>> {
    let backend = match provider {
        "azure" => azure(model, parameters),
        "azure_ai" => foundry(model, parameters),
        "vertex_ai" | "vertex_ai_beta" => vertex(model, parameters),
        "bedrock" => bedrock(model, parameters),
        "bedrock_mantle" => Ok(mantle(model, parameters)),
        _ => return None,
    };
    Some(backend)
}

fn base_of(parameters: &Map<String, Value>) -> Option<String> {
    let base = parameters
        .get("api_base")
        .or_else(|| parameters.get("base_url"));
    let base = base.and_then(text)?;
    Some(base.trim_end_matches('/').to_owned())
}

fn azure(model: &str, parameters: &Map<String, Value>) -> Result<CloudBackend, String> {
    let base = base_of(parameters).ok_or("azure needs api_base")?;
    let base = base.strip_suffix("/openai/v1").unwrap_or(&base);
    let base = base.strip_suffix("/openai").unwrap_or(base);
    let host = base.strip_prefix("https://");
    let resource = host.and_then(|host| host.strip_suffix(".openai.azure.com"));
    let place = match resource.filter(|resource| !resource.contains(['.', '/', '$'])) {
        Some(resource) => ("resource", scalar(resource)),
        None => ("base_url", scalar(&format!("{base}/openai/v1"))),
    };
    let auth = azure_auth("api-key", "AZURE_API_KEY", parameters);
    Ok(CloudBackend {
        preset: "azure",
        settings: vec![place, ("auth", auth)],
        model: model.strip_prefix("responses/").unwrap_or(model).to_owned(),
    })
}

/// Claude in Microsoft Foundry; the other models there have no preset.
fn foundry(model: &str, parameters: &Map<String, Value>) -> Result<CloudBackend, String> {
    if !model.starts_with("claude") {
        return Err("of azure_ai the gateway has a preset for Claude only".to_owned());
    }
    let base = base_of(parameters).ok_or("azure_ai needs api_base")?;
    let base = base.strip_suffix("/v1/messages").unwrap_or(&base);
    let base = base.strip_suffix("/anthropic").unwrap_or(base);
    // Claude is at another host of the same resource.
    let base = base.replace(".openai.azure.com", ".services.ai.azure.com");
    let auth = azure_auth("x-api-key", "AZURE_AI_API_KEY", parameters);
    Ok(CloudBackend {
        preset: "azure-anthropic",
        settings: vec![
            ("base_url", scalar(&format!("{base}/anthropic"))),
            ("auth", auth),
        ],
        model: model.to_owned(),
    })
}

fn azure_auth(header: &str, variable: &str, parameters: &Map<String, Value>) -> String {
    let get = |name: &str| parameters.get(name).and_then(yaml_text);
    if let Some(token) = get("azure_ad_token") {
        return mapping(&[("bearer", token)]);
    }
    let app = [
        ("tenant_id", "tenant"),
        ("client_id", "client_id"),
        ("client_secret", "client_secret"),
        ("azure_scope", "scope"),
    ];
    let app = settings_of(parameters, &app);
    if get("api_key").is_none() && !app.is_empty() {
        return mapping(&[("azure", mapping(&app))]);
    }
    if parameters.contains_key("use_default_identity") {
        return mapping(&[("azure", mapping(&[]))]);
    }
    let key = get("api_key").unwrap_or_else(|| scalar(&format!("${{{variable}}}")));
    let header = mapping(&[("name", header.to_owned()), ("value", key)]);
    mapping(&[("header", header)])
}

fn vertex(model: &str, parameters: &Map<String, Value>) -> Result<CloudBackend, String> {
    let is = |prefix: &str| model.starts_with(prefix);
    let preset = match model {
        _ if is("gemini") || is("text-embedding") || is("text-multilingual") => "vertex",
        _ if is("claude") => "vertex-anthropic",
        // `meta/llama-…`, `google/gemini-…`: the names of the OpenAI-compatible endpoint.
        model if model.contains('/') => "vertex-openai",
        _ => {
            return Err(format!(
                "the gateway has no preset for {model} on vertex_ai"
            ));
        }
    };
    if let (Some(key), "vertex") = (parameters.get("api_key").and_then(yaml_text), preset) {
        let header = mapping(&[("name", "x-goog-api-key".to_owned()), ("value", key)]);
        return Ok(CloudBackend {
            preset: "vertex-express",
            settings: vec![("auth", mapping(&[("header", header)]))],
            model: model.to_owned(),
        });
    }
    let mut settings = settings_of(parameters, &[("vertex_project", "project")]);
    if settings.is_empty() {
        settings = settings_of(parameters, &[("vertex_ai_project", "project")]);
    }
    let location = parameters.get("vertex_location").and_then(yaml_text);
    // The default there.
    settings.push((
        "location",
        location.unwrap_or_else(|| "us-central1".to_owned()),
    ));
    settings.extend(base_of(parameters).map(|base| ("base_url", scalar(&base))));
    if let Some(credentials) = parameters.get("vertex_credentials") {
        let written = match credentials {
            Value::Object(_) => Some(scalar(&credentials.to_string())),
            other => yaml_text(other),
        };
        let google = written.map(|written| mapping(&[("credentials", written)]));
        settings.extend(google.map(|google| ("auth", mapping(&[("google", google)]))));
    }
    Ok(CloudBackend {
        preset,
        settings,
        model: model.to_owned(),
    })
}

fn bedrock(model: &str, parameters: &Map<String, Value>) -> Result<CloudBackend, String> {
    let routes = ["converse/", "invoke/", "converse_like/"];
    let route = routes.iter().find_map(|route| model.strip_prefix(route));
    let model = route.unwrap_or(model);
    let preset = match model {
        _ if ["anthropic.claude", "titan-embed", "cohere.embed"]
            .iter()
            .any(|name| model.contains(name)) =>
        {
            "bedrock"
        }
        // A profile may be of any model; a pattern is for those of the preset.
        _ if model == "*" || model.starts_with("arn:") => "bedrock",
        _ if model.starts_with("openai.") => "bedrock-openai",
        _ => {
            return Err(format!(
                "of Bedrock the gateway has presets for Claude, for embeddings of Titan and Cohere, and for models with an OpenAI-compatible endpoint; if {model} has \
                 one, its preset is bedrock-openai"
            ));
        }
    };
    let path = match preset {
        "bedrock-openai" => "/openai/v1",
        _ => "",
    };
    Ok(on_aws(preset, model, parameters, path))
}

/// Bedrock Mantle, where Claude has an endpoint of its own.
fn mantle(model: &str, parameters: &Map<String, Value>) -> CloudBackend {
    match model.contains("claude") || model.starts_with("anthropic.") {
        true => on_aws("bedrock-mantle-anthropic", model, parameters, "/anthropic"),
        false => on_aws("bedrock-mantle", model, parameters, "/v1"),
    }
}

/// A preset of AWS with its region and credentials. `path`: what follows the address that parameters may give.
fn on_aws(
    preset: &'static str,
    model: &str,
    parameters: &Map<String, Value>,
    path: &str,
) -> CloudBackend {
    let mut settings = settings_of(parameters, &[("aws_region_name", "region")]);
    let endpoint = parameters
        .get("aws_bedrock_runtime_endpoint")
        .and_then(text);
    let endpoint = endpoint.or_else(|| base_of(parameters));
    settings.extend(endpoint.map(|base| {
        let base = format!("{}{path}", base.trim_end_matches('/'));
        ("base_url", scalar(&base))
    }));
    let keys = [
        ("aws_access_key_id", "access_key_id"),
        ("aws_secret_access_key", "secret_access_key"),
        ("aws_session_token", "session_token"),
        ("aws_profile_name", "profile"),
        ("aws_role_name", "role_arn"),
        ("aws_session_name", "role_session_name"),
        ("aws_external_id", "external_id"),
    ];
    let keys = settings_of(parameters, &keys);
    let bearer = parameters.get("api_key").and_then(yaml_text);
    let auth = bearer.map(|key| ("bearer", key)).or_else(|| {
        let keys = (!keys.is_empty()).then(|| mapping(&keys));
        keys.map(|keys| ("aws", keys))
    });
    settings.extend(auth.map(|auth| ("auth", mapping(&[auth]))));
    CloudBackend {
        preset,
        settings,
        model: model.to_owned(),
    }
}

/// The parameters that are there, under our names.
fn settings_of(
    parameters: &Map<String, Value>,
    names: &[(&str, &'static str)],
) -> Vec<(&'static str, String)> {
    let found = names.iter().filter_map(|(theirs, ours)| {
        let value = parameters.get(*theirs).and_then(yaml_text)?;
        Some((*ours, value))
    });
    found.collect()
}
