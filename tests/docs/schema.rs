//! The JSON Schema of the config takes every config of the repository, and no key that the parser does not know.

use omniglot::config::{parse_foreign_yaml, schema};
use serde_json::{Value, json};

use crate::blocks::{self, Kind};
use crate::{pages, read};

pub fn check() {
    let schema = schema();
    let file: Value = serde_json::from_str(&read("conf/omniglot.schema.json")).expect("JSON");
    assert!(
        file == schema,
        "conf/omniglot.schema.json is old: omniglot schema > conf/omniglot.schema.json"
    );
    let schema = jsonschema::validator_for(&schema).expect("a schema");
    let mut seen = 0;
    let mut accept = |name: &str, text: &str| {
        let config = parse_foreign_yaml(text).expect("YAML");
        let problems: Vec<String> = schema
            .iter_errors(&config)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(problems.is_empty(), "{name}: {problems:?}");
        seen += 1;
    };
    for name in [
        "conf/omniglot.yaml",
        "conf/demo.yaml",
        "packaging/omniglot.yaml",
        "examples/one-provider.yaml",
        "examples/failover.yaml",
        "examples/team.yaml",
    ] {
        accept(name, &read(name));
    }
    for page in pages() {
        for block in blocks::of_page(&read(&page)) {
            if let Kind::Config(_) = block.kind {
                accept(&format!("{page}:{}", block.line), &block.text);
            }
        }
    }
    assert!(seen > 50, "{seen} configs were seen");
    for wrong in [
        json!({"sevrer": {}}),
        json!({"server": {"lisden": "127.0.0.1:8080"}}),
        json!({"keys": [{"name": "dev", "modles": ["*"]}]}),
        json!({"models": [{"id": "m", "upstreams": [{"name": "u", "wieght": 1}]}]}),
        json!({"upstreams": [{"timeouts": {"conect": "3s"}}]}),
    ] {
        assert!(!schema.is_valid(&wrong), "{wrong}");
    }
}
