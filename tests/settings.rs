//! Valid configs: their values, their defaults, and the secrets that no output shows.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use omniglot::config::{
    AccessLogConfig, Amount, Auth, Balance, BaseUrl, Breaker, ConcurrencyLimit, Config,
    CorsOrigins, DEMO_KEY, Limits, OnUnsupported, Problem, Protocol, Reset, Retries, SignUp, demo,
    load, parse, route_table,
};
use omniglot::model::Format;
use secrecy::ExposeSecret;
use sha2::{Digest, Sha256};

const SAMPLE: &str = include_str!("../conf/omniglot.yaml");

fn nothing(_: &str) -> Option<String> {
    None
}

fn good(text: &str) -> Config {
    parse("test.yaml", text, &nothing).unwrap_or_else(|problems| panic!("{}", lines(&problems)))
}

fn lines(problems: &[Problem]) -> String {
    let lines: Vec<_> = problems.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

#[test]
fn missing_keys_have_their_defaults() {
    let config = good("server: {}");
    assert_eq!(config.journal.path, Path::new("omniglot-journal"));
    assert_eq!(config.journal.limit, 1 << 30);
    assert_eq!(config.journal.min_free, 256 << 20);
    assert!(config.telemetry.is_none());
    let conversations = config.server.conversations.expect("they are on");
    assert_eq!(conversations.max_bytes_per_key, 64 << 20);
    assert_eq!(config.images.tasks.max_bytes_per_key, 256 << 20);
    let tasks = config.images.tasks;
    assert_eq!((tasks.waiting, tasks.waiting_per_key), (100, 50));
    let tasks = good("images: {tasks: {waiting: 7}}").images.tasks;
    assert_eq!((tasks.waiting, tasks.waiting_per_key), (7, 4));
    let server = config.server;
    assert_eq!(server.listen.len(), 1);
    assert_eq!(server.listen[0].addr, address("127.0.0.1:8080"));
    assert!(server.listen[0].tls.is_none());
    assert_eq!(server.admin, None);
    assert_eq!(server.body_limit, 64 * 1024 * 1024);
    assert_eq!(server.drain_timeout, Duration::from_secs(30));
    assert_eq!(server.on_unsupported, OnUnsupported::Report);
    assert_eq!(server.access_log, AccessLogConfig::Off);
    assert_eq!(server.timeouts.header, Duration::from_secs(10));
    assert_eq!(server.timeouts.body_idle, Duration::from_secs(30));
    assert_eq!(server.timeouts.write_idle, Duration::from_secs(60));
    assert_eq!(server.timeouts.keep_alive, Some(Duration::from_secs(15)));
    assert!(server.validate_native);
    assert!(server.public_catalog);
    assert_eq!(server.cors, None);
    assert!(config.keys.is_empty() && config.upstreams.is_empty() && config.models.is_empty());
}

#[test]
fn entries_have_defaults_too() {
    let config = good(
        "
keys: [{name: dev, secret: s3cret}]
upstreams: [{name: acme, format: native, base_url: 'http://127.0.0.1:9000/'}]
models: [{id: large, upstreams: [{name: acme}]}]
",
    );
    let key = &config.keys[0];
    assert_eq!(key.sha256, <[u8; 32]>::from(Sha256::digest("s3cret")));
    assert_eq!(key.spending_cap, None);
    assert_eq!(key.models, None);
    assert_eq!(key.limits, Limits::default());
    let upstream = &config.upstreams[0];
    assert_eq!(upstream.format, Format::Native);
    assert!(upstream.auth.is_none() && upstream.headers.is_empty());
    assert_eq!(upstream.timeouts.connect, Duration::from_secs(3));
    assert_eq!(upstream.timeouts.first_byte, Some(Duration::from_secs(120)));
    assert_eq!(upstream.timeouts.idle, Some(Duration::from_secs(60)));
    assert_eq!(upstream.protocol, Protocol::Auto);
    assert_eq!(upstream.brand, "google");
    let model = &config.models[0];
    assert_eq!(model.provider, "omniglot");
    assert_eq!(model.model_type, "chat");
    assert_eq!(model.upstreams[0].weight, 1);
    assert_eq!(model.upstreams[0].model, None);
    assert!(model.fallbacks.is_empty() && model.capabilities.is_empty());
}

#[test]
fn the_sample_loads_on_a_fresh_machine() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("conf/omniglot.yaml");
    let config = load(&path, &nothing).unwrap_or_else(|problems| panic!("{}", lines(&problems)));
    assert_eq!(config.server.access_log, AccessLogConfig::Off);
    let written = |amount: &Option<Amount>| amount.as_ref().map(|amount| amount.written.clone());
    assert_eq!(
        written(&config.keys[0].spending_cap).as_deref(),
        Some("25.00")
    );
    assert_eq!(config.keys[0].reset, Reset::Monthly);
    let acme = &config.upstreams[0];
    assert_eq!(acme.base_url.host, "api.acme.example");
    assert!(matches!(&acme.auth, Some(Auth::Bearer(key)) if key.expose_secret() == "no-key-yet"));
    let large = &config.models[0];
    assert_eq!(written(&large.pricing.input).as_deref(), Some("1.25"));
    assert_eq!(written(&large.pricing.output).as_deref(), Some("10.0"));
    assert_eq!(large.pricing.per_request, None);
    assert_eq!(large.capabilities.len(), 23);
    let sizes = (
        "image_sizes".to_owned(),
        "1024x1024,1536x1024,1024x1536".to_owned(),
    );
    let art = config.models.last().expect("a model");
    assert!(art.is_image_model());
    assert_eq!(art.capabilities, [sizes]);
    assert_eq!(config.images.tasks.at_once, 4);
    assert_eq!(config.images.files.hosts, ["files.internal:8443"]);
    let version = ("messages_version".to_owned(), "2026-10-21".to_owned());
    assert_eq!(large.capabilities[0], version);
    let efforts = ("efforts".to_owned(), "low,medium,high".to_owned());
    assert_eq!(large.capabilities[21], efforts);
}

#[test]
fn the_demo_loads_and_needs_nothing() {
    let config = demo(address("127.0.0.1:4567"), Path::new("/tmp/demo"));
    assert_eq!(config.server.listen[0].addr, address("127.0.0.1:8080"));
    assert_eq!(config.server.admin, Some(address("127.0.0.1:8081")));
    assert_eq!(config.keys[0].name, "demo");
    assert_eq!(
        config.keys[0].sha256,
        <[u8; 32]>::from(Sha256::digest(DEMO_KEY))
    );
    for (upstream, format) in config.upstreams.iter().zip(Format::ALL) {
        assert_eq!(upstream.format, format);
        assert_eq!(upstream.name, format!("mock-{}", format.name()));
        assert_eq!(upstream.base_url.authority, "127.0.0.1:4567");
        let with_version = matches!(format, Format::Chat | Format::Responses);
        assert_eq!(
            upstream.base_url.prefix,
            if with_version { "/v1" } else { "" }
        );
    }
    for (model, format) in config.models.iter().zip(Format::ALL) {
        assert_eq!(model.id, format!("demo-{}", format.name()));
        assert_eq!(model.provider, "demo");
    }
    assert_eq!((config.upstreams.len(), config.models.len()), (5, 7));
    assert_eq!(config.upstreams[4].format, Format::Images);
    assert!(config.models[4].is_image_model());
    assert_eq!(lines(&config.warnings), "");
    demo(address("[::1]:4567"), Path::new("/tmp/demo"));
}

#[test]
fn a_console_has_its_defaults_and_its_values() {
    let console = |text: &str| good(&format!("store: sqlite:test.db\nconsole: {text}")).console;
    assert!(good("server: {}").console.is_none());
    let default = console("{}").expect("a console");
    assert_eq!(default.listen.addr, address("127.0.0.1:8082"));
    assert_eq!(default.public_url, "http://127.0.0.1:8082");
    assert_eq!(default.sign_up, SignUp::Invite);
    assert_eq!(default.session.idle, Duration::from_secs(8 * 3600));
    assert_eq!(default.session.absolute, Duration::from_secs(7 * 24 * 3600));
    let keys = default.member_keys;
    assert_eq!(
        (keys.max, keys.unlimited, keys.expires_max),
        (10, false, None)
    );
    assert_eq!(
        (&*keys.cap_max.written, &*keys.cap_default.written),
        ("100", "10")
    );
    let given = console(
        "{listen: \"0.0.0.0:9000\", public_url: \"https://console.example.com/\", sign_up: closed,
          trusted_proxies: [10.0.0.0/8, \"::1\"], mail: {from: a@example.com, file: outbox}, member_keys: {cap_max: 5, expires_max: 90d}}",
    );
    let given = given.expect("a console");
    assert_eq!(given.public_url, "https://console.example.com");
    assert_eq!(
        (given.sign_up, given.trusted_proxies.len()),
        (SignUp::Closed, 2)
    );
    // A default that nobody wrote does not exceed what somebody did.
    assert_eq!(given.member_keys.cap_default.written, "5");
    let days = Duration::from_secs(90 * 24 * 3600);
    assert_eq!(given.member_keys.expires_max, Some(days));
}

#[test]
fn json_is_yaml() {
    let config = good(
        r#"{
  "server": {"listen": ["127.0.0.1:0", {"addr": "[::1]:0"}], "access_log": "json"},
  "keys": [{"name": "dev", "secret": "s", "spending_cap": 0.10, "models": ["a-*"],
            "limits": {"concurrency": 2}}],
  "upstreams": [], "models": []
}"#,
    );
    assert_eq!(config.server.listen.len(), 2);
    assert_eq!(config.server.access_log, AccessLogConfig::Json);
    let cap = config.keys[0].spending_cap.as_ref().expect("a cap");
    assert_eq!(
        (cap.written.as_str(), cap.money.to_string().as_str()),
        ("0.10", "0.1")
    );
    assert_eq!(config.keys[0].limits.concurrency, Some(2));
}

#[test]
fn switches_are_written_as_people_write_them() {
    for (word, is_on) in [
        ("true", true),
        ("on", true),
        ("yes", true),
        ("True", true),
        ("ON", true),
        ("false", false),
        ("off", false),
        ("no", false),
        ("False", false),
        ("\"off\"", false),
    ] {
        let config = good(&format!(
            "server: {{validate_native: {word}, conversations: {word}}}
images: {{persist: {word}}}
upstreams: [{{name: a, format: chat, base_url: 'http://a', breaker: {word}}}]
models: [{{id: m, upstreams: [{{name: a}}], capabilities: {{sampling: {word}}}}}]"
        ));
        assert_eq!(config.server.validate_native, is_on, "{word}");
        assert_eq!(config.server.conversations.is_some(), is_on, "{word}");
        assert_eq!(config.images.persist, is_on, "{word}");
        assert_eq!(config.upstreams[0].breaker.is_some(), is_on, "{word}");
        let sampling = ("sampling".to_owned(), is_on.to_string());
        assert_eq!(config.models[0].capabilities, [sampling], "{word}");
    }
    for word in ["off", "no", "false"] {
        let config = good(&format!(
            "server: {{access_log: {word}, timeouts: {{keep_alive: {word}}}}}"
        ));
        assert_eq!(config.server.access_log, AccessLogConfig::Off);
        assert_eq!(config.server.timeouts.keep_alive, None);
    }
}

#[test]
fn the_origins_of_web_pages_are_parsed() {
    let listed = |origins: &[&str]| {
        let origins = origins.iter().map(|origin| (*origin).to_owned());
        Some(CorsOrigins::Listed(origins.collect()))
    };
    for (text, expected) in [
        ("off", None),
        ("\"*\"", Some(CorsOrigins::Any)),
        ("https://app.example", listed(&["https://app.example"])),
        (
            "[\"http://localhost:3000\", \"tauri://localhost\"]",
            listed(&["http://localhost:3000", "tauri://localhost"]),
        ),
    ] {
        let config = good(&format!("server: {{cors: {text}}}"));
        assert_eq!(config.server.cors, expected, "{text}");
    }
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_are_fine() {
    let config = good("\u{feff}server:\r\n  admin: 127.0.0.1:9\r\n  access_log: off\r\n");
    assert_eq!(config.server.admin, Some(address("127.0.0.1:9")));
}

#[test]
fn anchors_and_merge_keys_are_resolved() {
    let config = good(
        "
upstreams:
  - &acme {name: acme, format: chat, base_url: 'https://a.example/v1', timeouts: {idle: 5s}}
  - {<<: *acme, name: acme-eu, base_url: 'https://eu.a.example/v1'}
",
    );
    let eu = &config.upstreams[1];
    assert_eq!(
        (eu.name.as_str(), eu.base_url.host.as_str()),
        ("acme-eu", "eu.a.example")
    );
    assert_eq!(eu.timeouts.idle, Some(Duration::from_secs(5)));
}

#[test]
fn variables_are_expanded_in_any_value() {
    let env = |name: &str| match name {
        "PORT" => Some("0".to_owned()),
        "WEIGHT" => Some("7".to_owned()),
        "EMPTY" => Some(String::new()),
        _ => None,
    };
    let text = r#"
server: {listen: "127.0.0.1:${PORT}", body_limit: "${LIMIT:-2KiB}", access_log: "${EMPTY:-json}"}
upstreams: [{name: '${NAME:-acme}', format: chat, base_url: "https://a.example/v1"}]
models: [{id: large, upstreams: [{name: acme, weight: "${WEIGHT}"}]}]
"#;
    let config = parse("test.yaml", text, &env).unwrap();
    assert_eq!(config.server.listen[0].addr, address("127.0.0.1:0"));
    assert_eq!(config.server.body_limit, 2048);
    assert_eq!(config.server.access_log, AccessLogConfig::Json);
    assert_eq!(config.models[0].upstreams[0].weight, 7);
}

#[test]
fn base_urls_are_parsed() {
    for (url, tls, host, port, authority, prefix) in [
        ("https://a.example", true, "a.example", 443, "a.example", ""),
        (
            "https://A.example:443/v1/",
            true,
            "a.example",
            443,
            "a.example",
            "/v1",
        ),
        (
            "http://a.example:8000/x/y",
            false,
            "a.example",
            8000,
            "a.example:8000",
            "/x/y",
        ),
        ("http://[::1]:80/", false, "::1", 80, "[::1]", ""),
        ("https://[::1]:8443", true, "::1", 8443, "[::1]:8443", ""),
    ] {
        let text = format!("upstreams: [{{name: a, format: chat, base_url: '{url}'}}]");
        let expected = BaseUrl {
            tls,
            host: host.to_owned(),
            port,
            authority: authority.to_owned(),
            prefix: prefix.to_owned(),
        };
        assert_eq!(good(&text).upstreams[0].base_url, expected, "{url}");
    }
}

#[test]
fn the_route_table_has_a_row_per_upstream_of_a_model() {
    let expected = "
| model       | format                    | upstream             | priority | weight | fallbacks               |
|-------------|---------------------------|----------------------|----------|--------|-------------------------|
| acme-large  | chat                      | acme (large-2026-01) | 0        | 3      | globex-pro, local-small |
| acme-large  | messages                  | acme-eu              | 0        | 1      | globex-pro, local-small |
| acme-large  | responses                 | local (large-local)  | 1        | 1      | globex-pro, local-small |
| globex-pro  | native                    | globex               | 0        | 1      |                         |
| local-small | responses                 | local                | 0        | 1      |                         |
| local-small | chat, messages            | gpu                  | 0        | 1      |                         |
| local-small | chat, messages, responses | ollama               | 1        | 1      |                         |
| acme/*      | chat                      | acme (*)             | 0        | 1      | globex-pro              |
| acme-art    | images                    | acme-art             | 0        | 1      |                         |";
    assert_eq!(route_table(&good(SAMPLE)), expected.trim_start());
}

#[test]
fn the_sample_draws_no_warnings() {
    assert_eq!(lines(&good(SAMPLE).warnings), "");
}

#[test]
fn timeouts_and_retries_are_set_for_upstreams_and_for_models() {
    let config = good(
        "
server: {max_in_flight: 500, timeouts: {body: 1m}}
upstreams:
  - name: a
    format: chat
    base_url: http://a
    timeouts: {connect: 1s, total: 5m}
    max_in_flight: 8
    queue: 0
    queue_timeout: 1s
    breaker: {failures: 2, failure_rate: 25%, open_for: 1m}
    health: {path: /models, interval: 2s}
  - {name: b, format: chat, base_url: 'http://b', breaker: off}
models:
  - id: m
    upstreams: [{name: a, priority: 2}, {name: b}]
    balance: {header: X-Session}
    retries: {attempts: 4, per_attempt_timeout: 20s, total_timeout: 1m, backoff: 0s}
    timeouts: {first_byte: off, idle: 2s}
  - {id: n, upstreams: [{name: a}], balance: least_in_flight}
",
    );
    let seconds = Duration::from_secs;
    assert_eq!(config.server.max_in_flight, Some(500));
    assert_eq!(config.server.timeouts.body, seconds(60));
    let [a, b] = config.upstreams.as_slice() else {
        panic!("two upstreams");
    };
    let room = ConcurrencyLimit {
        max_in_flight: Some(8),
        queue: 0,
        queue_timeout: seconds(1),
    };
    assert_eq!((a.concurrency, b.concurrency.max_in_flight), (room, None));
    let breaker = Breaker {
        failures: 2,
        percent: 25,
        open_for: seconds(60),
    };
    assert_eq!((a.breaker, b.breaker), (Some(breaker), None));
    let health = a.health.as_ref().expect("a health check");
    assert_eq!(
        (health.path.as_str(), health.interval),
        ("/models", seconds(2))
    );
    let [m, n] = config.models.as_slice() else {
        panic!("two models");
    };
    assert_eq!(m.balance, Balance::Header("x-session".to_owned()));
    assert_eq!(n.balance, Balance::LeastInFlight);
    assert_eq!((m.upstreams[0].priority, m.upstreams[1].priority), (2, 0));
    let retries = Retries {
        attempts: Some(4),
        per_attempt_timeout: Some(seconds(20)),
        total_timeout: Some(seconds(60)),
        backoff: Duration::ZERO,
    };
    assert_eq!(m.retries, retries);
    let timeouts = m.timeouts.over(a.timeouts);
    assert_eq!(
        (timeouts.connect, timeouts.total),
        (seconds(1), Some(seconds(300)))
    );
    assert_eq!(
        (timeouts.first_byte, timeouts.idle),
        (None, Some(seconds(2)))
    );
}

#[test]
fn files_that_cannot_be_read_are_problems() {
    let folder = tempfile::tempdir().unwrap();
    let gone = load(&folder.path().join("gone.yaml"), &nothing).unwrap_err();
    assert!(lines(&gone).contains("gone.yaml:1:1: cannot read this file: "));
    let latin1 = folder.path().join("latin1.yaml");
    std::fs::write(&latin1, b"server: {}\n# caf\xe9").unwrap();
    let latin1 = load(&latin1, &nothing).unwrap_err();
    assert!(lines(&latin1).ends_with("latin1.yaml:2:6: not UTF-8; save the file as UTF-8"));
}

#[test]
fn tls_files_that_exist_are_fine() {
    let folder = tempfile::tempdir().unwrap();
    let pem = folder.path().join("cert.pem");
    std::fs::write(&pem, "").unwrap();
    let pem = pem.display();
    let text = format!(
        "server: {{listen: {{addr: '127.0.0.1:0', tls: {{cert: '{pem}', key: '{pem}'}}}}}}"
    );
    assert!(good(&text).server.listen[0].tls.is_some());
}

/// Every value of the sample in turn is taken from the environment, and every one in turn holds
/// something that a message might be tempted to quote.
#[test]
fn values_of_variables_are_never_shown_in_a_problem() {
    for canary in [
        "canary",
        "canary canary",
        "https://canary:canary@canary/?canary",
        "canary\n",
    ] {
        let env = |name: &str| (name == "CANARY").then(|| canary.to_owned());
        let mut broken = 0;
        for text in with_each_value_replaced("\"${CANARY}\"") {
            if let Err(problems) = parse("test.yaml", &text, &env) {
                assert!(!lines(&problems).contains("canary"), "{}", lines(&problems));
                broken += 1;
            }
        }
        assert!(broken > 30, "only {broken} broken configs");
    }
}

#[test]
fn secrets_are_never_shown() {
    let secrets = ["omniglot-dev-key", "no-key-yet"];
    for canary in ["canary", "canary canary\\n"] {
        let mut texts = with_each_value_replaced("{wrong: kind}");
        texts.push(SAMPLE.to_owned());
        for text in texts {
            let text = secrets.iter().fold(text, |text, secret| {
                text.replace(&format!(":-{secret}}}"), ":-SECRET}")
            });
            let text = text.replace("${OMNIGLOT_KEY:-SECRET}", "\"${OMNIGLOT_KEY:-SECRET}\"");
            let text = text
                .replace("x-team: search", "x-team: \"SECRET\"")
                .replace("SECRET", canary);
            let shown = match parse("test.yaml", &text, &nothing) {
                Ok(config) => format!("{config:?} {}", route_table(&config)),
                Err(problems) => lines(&problems),
            };
            assert!(!shown.contains("canary"), "{shown}");
        }
    }
}

/// The sample once for every scalar in it, with that one replaced.
fn with_each_value_replaced(value: &str) -> Vec<String> {
    let sample: Vec<_> = SAMPLE
        .lines()
        .map(|line| line.split(" #").next().unwrap_or_default())
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect();
    let sample = sample.join("\n");
    let pattern =
        regex::Regex::new(r#"(?m): ("[^"]*"|\$\{[^}]*\}\S*|[^\s,\[\]{}"$][^,\[\]{}\n]*)"#);
    let pattern = pattern.unwrap();
    let places = pattern
        .captures_iter(&sample)
        .filter_map(|found| found.get(1));
    places
        .map(|place| {
            let (before, after) = (&sample[..place.start()], &sample[place.end()..]);
            format!("{before}{value}{after}")
        })
        .collect()
}

#[test]
fn a_store_is_shown_without_its_password() {
    let env = |name: &str| (name == "PASSWORD").then(|| "p4ss%20word".to_owned());
    for (text, shown) in [
        ("sqlite:omniglot.db", "sqlite:omniglot.db"),
        (
            "sqlite:///var/lib/omniglot.db",
            "sqlite:/var/lib/omniglot.db",
        ),
        (
            "postgres://me:${PASSWORD}@db.example:5433/gate?sslmode=require&password=p4ssword",
            "postgres://me@db.example:5433/gate",
        ),
        (
            "postgresql:///gate?host=/run/postgresql",
            "postgres:///gate",
        ),
    ] {
        let config = parse("test.yaml", &format!("store: \"{text}\""), &env);
        let config = config.unwrap_or_else(|problems| panic!("{}", lines(&problems)));
        let store = config.store.expect("a store");
        assert_eq!(store.to_string(), shown);
        assert!(!format!("{store:?}").contains("p4ss"), "{store:?}");
    }
    assert!(good("server: {}").store.is_none());
}

#[test]
fn a_store_of_limits_is_shown_without_its_password() {
    for (text, shown) in [
        ("redis://127.0.0.1:6379/3", "redis://127.0.0.1:6379/3"),
        ("redis://cache", "redis://cache"),
        (
            "rediss://me:p4ssword@cache.example:6380/",
            "rediss://me@cache.example:6380/",
        ),
        ("redis://:p4ssword@[::1]", "redis://[::1]"),
    ] {
        let config = good(&format!("limits_store: \"{text}\""));
        let store = config.limits_store.expect("a store");
        assert_eq!(store.to_string(), shown);
        assert!(!format!("{store:?}").contains("p4ss"), "{store:?}");
    }
    assert!(good("server: {}").limits_store.is_none());
}

/// The formats of an upstream with their base URLs.
fn endpoints(config: &Config) -> Vec<Vec<String>> {
    let upstreams = config.upstreams.iter();
    upstreams
        .map(|upstream| {
            let first = format!("{} {}", upstream.format.name(), upstream.base_url);
            let others = upstream.other_formats.iter();
            let others = others.map(|(format, base_url)| format!("{} {base_url}", format.name()));
            std::iter::once(first).chain(others).collect()
        })
        .collect()
}

#[test]
fn a_preset_fills_in_what_an_upstream_leaves_out() {
    let environment = |name: &str| match name {
        "OPENAI_API_KEY" => Some("key-of-openai".to_owned()),
        "GEMINI_API_KEY" => Some("key-of-gemini".to_owned()),
        "GOOGLE_API_KEY" => Some(String::new()),
        _ => None,
    };
    let text = "upstreams:\n  - openai\n  - {provider: gemini, name: google}\n  - ollama\n\
                \x20 - {provider: mistral, name: open, auth: none, timeouts: {connect: 1s}}\n";
    let config = parse("test.yaml", text, &environment);
    let config = config.unwrap_or_else(|problems| panic!("{}", lines(&problems)));
    let [openai, google, ollama, mistral] = &config.upstreams[..] else {
        panic!("four upstreams");
    };
    assert_eq!(openai.name, "openai");
    assert_eq!(openai.format, Format::Chat);
    let others: Vec<Format> = openai.other_formats.iter().map(|(of, _)| *of).collect();
    assert_eq!(others, [Format::Responses, Format::Images]);
    assert!(
        matches!(&openai.auth, Some(Auth::Bearer(key)) if key.expose_secret() == "key-of-openai")
    );
    assert_eq!(google.name, "google");
    // The variable that wins is set to nothing.
    assert!(matches!(
        &google.auth,
        Some(Auth::Header { name, value })
            if name == "x-goog-api-key" && value.expose_secret() == "key-of-gemini"
    ));
    assert!(ollama.auth.is_none(), "its key is optional");
    assert!(mistral.auth.is_none(), "its key is not wanted");
    assert_eq!(mistral.timeouts.connect, Duration::from_secs(1));
    let old_limit = ("chat_max_field".to_owned(), "max_tokens".to_owned());
    assert!(mistral.capabilities.contains(&old_limit));
    assert!(
        !format!("{config:?}").contains("key-of-"),
        "no key is shown"
    );
}

#[test]
fn the_formats_of_a_preset_move_with_its_address() {
    let config = good(
        "upstreams:\n  - {provider: vllm, name: a, base_url: \"http://gpu:9/deep/v1\"}\n\
         \x20 - {provider: vllm, name: b, base_url: \"http://gpu:9/v2\"}\n\
         \x20 - {provider: vllm, name: c, format: messages}\n\
         \x20 - {provider: vllm, name: d, format: native, base_url: \"http://gpu:9\"}\n\
         \x20 - {name: e, formats: {messages: \"http://gpu:9\", chat: \"http://gpu:9/v1\"}}\n",
    );
    assert_eq!(
        endpoints(&config),
        [
            vec![
                "chat http://gpu:9/deep/v1",
                "messages http://gpu:9/deep",
                "responses http://gpu:9/deep/v1"
            ],
            vec!["chat http://gpu:9/v2"],
            vec!["messages http://localhost:8000"],
            vec!["native http://gpu:9"],
            vec!["messages http://gpu:9", "chat http://gpu:9/v1"],
        ]
    );
}

#[test]
fn the_capabilities_of_an_upstream_win_over_its_preset() {
    let config = good(
        "upstreams: [{provider: ollama, capabilities: {chat_max_field: max_completion_tokens}}]",
    );
    let flags = &config.upstreams[0].capabilities;
    let last = flags.iter().rfind(|(name, _)| name == "chat_max_field");
    assert_eq!(
        last.map(|(_, value)| value.as_str()),
        Some("max_completion_tokens")
    );
}

#[test]
fn the_host_of_a_cloud_follows_from_its_place() {
    for (upstream, expected) in [
        (
            "{provider: vertex, project: p, location: global}",
            "https://aiplatform.googleapis.com",
        ),
        (
            "{provider: vertex-anthropic, project: p, location: us}",
            "https://aiplatform.us.rep.googleapis.com",
        ),
        (
            "{provider: vertex-openai, project: p, location: europe-west1}",
            "https://europe-west1-aiplatform.googleapis.com",
        ),
        (
            "{provider: azure, resource: mine, auth: {bearer: t}}",
            "https://mine.openai.azure.com/openai/v1",
        ),
        (
            "{provider: azure, base_url: 'https://mine.openai.azure.us/openai/v1', auth: {azure: {}}}",
            "https://mine.openai.azure.us/openai/v1",
        ),
        (
            "{provider: azure-anthropic, resource: mine, auth: {bearer: t}}",
            "https://mine.services.ai.azure.com/anthropic",
        ),
    ] {
        let config = good(&format!("upstreams: [{upstream}]"));
        assert_eq!(config.upstreams[0].base_url.to_string(), expected);
    }
}

#[test]
fn what_a_cloud_needs_is_named() {
    for (upstream, expected) in [
        (
            "vertex",
            "the provider vertex needs location: write location, or set GOOGLE_CLOUD_LOCATION, or write base_url",
        ),
        (
            "{provider: vertex, location: eu}",
            "paths.generate has {project}; write project, or set GOOGLE_CLOUD_PROJECT",
        ),
        (
            "{provider: azure, auth: {azure: {}}}",
            "the provider azure needs resource: write resource, or write base_url",
        ),
        (
            "{provider: azure, resource: r}",
            "the provider azure needs a key: set the variable AZURE_OPENAI_API_KEY, or write auth",
        ),
        (
            "{provider: azure, resource: r, auth: {azure: {client_secret: hush}}}",
            "azure needs \"tenant\": write it, or set AZURE_TENANT_ID",
        ),
        (
            "{provider: azure, resource: r, auth: {azure: {client_secret: hush, managed_identity: on}}}",
            "azure takes one of",
        ),
        (
            "{provider: vertex, project: p, location: eu, auth: {google: {credentials: '{hush'}}}",
            "credentials must be the path of a file of credentials, or its JSON",
        ),
    ] {
        let text = format!("upstreams: [{upstream}]");
        let problems = parse("test.yaml", &text, &nothing).expect_err(upstream);
        let problems = lines(&problems);
        assert!(problems.contains(expected), "{upstream}: {problems}");
        assert!(!problems.contains("hush"), "{problems}");
    }
}
