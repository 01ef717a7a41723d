//! The sources that botocore takes in the same surroundings, and the keys of the config.

use std::collections::BTreeMap;

use secrecy::ExposeSecret as _;
use serde::Deserialize;

use super::*;
use crate::config::Secret;

/// What botocore takes, by the files, the profile of the session, and the variables.
#[derive(Deserialize)]
struct ChainCases {
    files: BTreeMap<String, (String, String)>,
    cases: Vec<ChainCase>,
}

/// The files, the profile of the session, the variables, and what botocore takes.
type ChainCase = (String, Option<String>, BTreeMap<String, String>, String);

fn config() -> AwsSource {
    AwsSource {
        region: "us-east-1".to_owned(),
        service: "bedrock".to_owned(),
        access_key_id: None,
        secret_access_key: None,
        session_token: None,
        profile: None,
        role_arn: None,
        role_session_name: None,
        external_id: None,
        web_identity_token_file: None,
    }
}

fn described(provider: &AwsProvider) -> String {
    match provider {
        AwsProvider::Static(keys) => {
            let token = keys.session_token.as_ref();
            let token = token.map_or("", |token| token.expose_secret());
            let (id, secret) = (&keys.access_key_id, keys.secret_access_key.expose_secret());
            format!("static {id} {secret} {token}")
                .trim_end()
                .to_owned()
        }
        AwsProvider::Role { source, role } => {
            let mut text = format!("role {}", role.arn);
            if role.session_name != SESSION_NAME {
                text.push_str(&format!(" RoleSessionName={}", role.session_name));
            }
            for (name, value) in [
                ("ExternalId", role.external_id.clone()),
                (
                    "DurationSeconds",
                    role.duration_seconds.map(|seconds| seconds.to_string()),
                ),
            ] {
                text.extend(value.map(|value| format!(" {name}={value}")));
            }
            format!("{text} from ({})", described(source))
        }
        AwsProvider::WebIdentity { token_file, role } => {
            format!("web identity {token_file} {}", role.arn)
        }
        AwsProvider::Process(words) => format!("process {}", words.join("|")),
        AwsProvider::Container(endpoint) => {
            let token = endpoint.token.as_deref().unwrap_or_default();
            format!("container {} {token}", endpoint.url)
                .trim_end()
                .to_owned()
        }
        AwsProvider::Instance { endpoint } => format!("instance {endpoint}"),
    }
}

fn find(
    config: &AwsSource,
    files: &(String, String),
    variables: &BTreeMap<String, String>,
) -> Result<String, String> {
    let files = SharedFiles::parse(&files.0, &files.1).expect("the files are right");
    let environment = AwsEnvironment {
        variable: &|name| variables.get(name).cloned(),
        files: &files,
    };
    find_provider(config, &environment).map(|provider| described(&provider))
}

#[test]
fn the_source_is_the_one_that_botocore_takes() {
    let cases: ChainCases = serde_json::from_str(include_str!("chain.json")).expect("the cases");
    assert!(cases.cases.len() > 300);
    for (files, profile, variables, expected) in &cases.cases {
        let config = AwsSource {
            profile: profile.clone(),
            ..config()
        };
        let found = find(&config, &cases.files[files], variables);
        let found = match &found {
            Ok(found) => found,
            Err(reason) if reason.starts_with("no AWS credentials") => "none",
            Err(_) => "error",
        };
        assert_eq!(found, expected, "{files}, {profile:?}, {variables:?}");
    }
}

#[test]
fn keys_and_roles_of_the_config_come_first() {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "ENVID"),
        ("AWS_SECRET_ACCESS_KEY", "s"),
    ];
    let variables = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let variables = BTreeMap::from(variables);
    let files = Default::default();
    let keys = AwsSource {
        access_key_id: Some("OWN".to_owned()),
        secret_access_key: Some(Secret::new("secret".to_owned())),
        session_token: Some(Secret::new("token".to_owned())),
        ..config()
    };
    let found = find(&keys, &files, &variables);
    assert_eq!(found.as_deref(), Ok("static OWN secret token"));
    let role = AwsSource {
        role_arn: Some("arn:r".to_owned()),
        external_id: Some("ext".to_owned()),
        ..config()
    };
    let found = find(&role, &files, &variables);
    assert_eq!(
        found.as_deref(),
        Ok("role arn:r ExternalId=ext from (static ENVID s)")
    );
    let web = AwsSource {
        web_identity_token_file: Some("/t".to_owned()),
        ..role
    };
    let found = find(&web, &files, &variables);
    assert_eq!(found.as_deref(), Ok("web identity /t arn:r"));
}

#[test]
fn what_cannot_be_done_is_said() {
    for (profile, expected) in [
        (
            "sso_session = s",
            "the AWS profile default signs in by SSO: use one with `credential_process = aws configure export-credentials --profile default`",
        ),
        (
            "role_arn = r\nmfa_serial = m\nsource_profile = default",
            "the AWS profile default asks for a code of a device: use another",
        ),
        (
            "credential_process = 'open",
            "the credential_process of the AWS profile default is no command",
        ),
    ] {
        let files = (format!("[default]\n{profile}\n"), String::new());
        let found = find(&config(), &files, &BTreeMap::new());
        assert_eq!(found, Err(expected.to_owned()));
    }
}
