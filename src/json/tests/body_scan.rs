//! What one pass finds: unknown, misplaced and repeated fields, other models, wanted fields and stored items.

use super::{BodyScan, scan_body};
use crate::json::UnknownFieldRules;
use crate::json::{FieldIndex, KnownFields, NO_FIELDS, PlacedFields};

const TEXT: KnownFields = KnownFields {
    top: &["messages", "metadata", "tier", "choice"],
    nested: &["role", "content"],
    opaque: &["schema", "metadata", "choice"],
    types: &["text"],
    ..NO_FIELDS
};

const KNOWN: KnownFields = KnownFields {
    top: &["store", "tools", "model"],
    nested: &["detail", "id", "whole"],
    types: &["image", "reasoning", "url"],
    placed: &[
        PlacedFields {
            names: &["url", "file"],
            kind: Some("image"),
            at: &["messages.content"],
        },
        PlacedFields {
            names: &["link"],
            kind: None,
            at: &["messages.content.url", "store"],
        },
    ],
    wanted: &[&["tier", "level"], &["store"]],
    searched: &["choice"],
    prompting: &["tools"],
    turns: Some("messages"),
    stored: Some(("reasoning", "whole")),
    base: Some(&TEXT),
    ..NO_FIELDS
};

fn names_model(key: &str, is_top: bool) -> bool {
    key == "model" || key == "models" || (is_top && key == "route")
}

fn scan(text: &str) -> BodyScan<'_> {
    let rules = UnknownFieldRules {
        names_model,
        chosen_host: |key, _| (key == "host").then(|| key.to_owned()),
    };
    scan_body(text, &FieldIndex::new(&KNOWN, rules))
}

#[test]
fn every_field_is_looked_at_but_those_of_opaque_data() {
    for (text, is_text) in [
        ("{}", true),
        (
            r#"{"messages":[{"role":"user","content":[{"type":"text","content":"url"}]}]}"#,
            true,
        ),
        (
            r#"{"messages":{"schema":{"file":1,"file":2,"type":"x"},"\u0072ole":1},"metadata":{"a":1}}"#,
            true,
        ),
        (r#"{"store":1,"messages":[{"detail":"url"}]}"#, false),
        (r#"{"messages":[{"type":"image"}]}"#, false),
    ] {
        let found = scan(text);
        assert_eq!(found.unknown_field, None, "{text}");
        assert_eq!(found.is_text, is_text, "{text}");
    }
    for (text, path) in [
        ("", ""),
        ("[]", ""),
        ("{} {}", ""),
        (r#"{"messages":"#, ""),
        (r#"{"role":1}"#, "role"),
        (r#"{"schema":1}"#, "schema"),
        (r#"{"messages":[{},{"type":"video"}]}"#, "messages[1].type"),
        (r#"{"messages":{"type":["text"]}}"#, "messages.type"),
        (r#"{"messages":{"type":"\ud800"}}"#, "messages.type"),
        (
            r#"{"messages":{"content":[[0,{"zzz":1}]],"zzz":1}}"#,
            "messages.content[0][1].zzz",
        ),
        (r#"{"messages":{"Content":1}}"#, "messages.Content"),
        (r#"{"messages":{"messages":1}}"#, "messages.messages"),
        (r#"{"zzz":{"yyy":1}}"#, "zzz"),
    ] {
        let found = scan(text);
        assert_eq!(found.unknown_field.as_deref(), Some(path), "{text}");
        assert!(!found.is_text, "{text}");
    }
}

#[test]
fn a_field_counts_once_in_an_object() {
    for (text, path) in [
        (r#"{"store":1,"store":2}"#, "store"),
        (
            r#"{"messages":[0,{"content":"x","role":{},"content":[]}]}"#,
            "messages[1].content",
        ),
        (r#"{"messages":{"role":1,"\u0072ole":2}}"#, "messages.role"),
        (
            r#"{"messages":{"type":"text","type":"image"}}"#,
            "messages.type",
        ),
    ] {
        assert_eq!(scan(text).unknown_field.as_deref(), Some(path), "{text}");
    }
    let apart = r#"{"messages":{"content":[{"content":"content"},{"content":1}]}}"#;
    assert_eq!(scan(apart).unknown_field, None);
}

#[test]
fn a_field_of_some_places_is_known_there_only() {
    for text in [
        r#"{"messages":[{"content":[{"type":"image","url":{"link":1}},{"type":"image","file":1}]}]}"#,
        r#"{"messages":[{"content":{"file":"a","url":null,"type":"image"}}]}"#,
        r#"{"store":{"link":1}}"#,
    ] {
        assert_eq!(scan(text).unknown_field, None, "{text}");
    }
    for (text, path) in [
        (
            r#"{"messages":[{"content":[{"type":"text","content":"x","url":1}]}]}"#,
            "messages[0].content[0].url",
        ),
        (
            r#"{"messages":[{"content":[{"url":1}]}]}"#,
            "messages[0].content[0].url",
        ),
        (
            r#"{"messages":[{"content":[{"type":"image","url":1,"file":2}]}]}"#,
            "messages[0].content[0].url",
        ),
        (
            r#"{"messages":[{"type":"image","url":1}]}"#,
            "messages[0].url",
        ),
        (
            r#"{"tools":[{"content":[{"type":"image","url":1}]}]}"#,
            "tools[0].content[0].url",
        ),
        (r#"{"url":1}"#, "url"),
        (r#"{"store":{"type":"url","link":1}}"#, "store.link"),
    ] {
        assert_eq!(scan(text).unknown_field.as_deref(), Some(path), "{text}");
    }
}

#[test]
fn another_model_is_found_wherever_an_upstream_may_look_for_it() {
    for (text, path) in [
        (r#"{"model":"m","models":["a"]}"#, Some("models")),
        (r#"{"model":{"model":1}}"#, Some("model.model")),
        (
            r#"{"tools":[{},{"a":[{"\u006dodel":"x"}]}]}"#,
            Some("tools[1].a[0].model"),
        ),
        (r#"{"route":"x"}"#, Some("route")),
        (r#"{"zzz":{"route":"x"}}"#, None),
        (
            r#"{"zzz":{"schema":{"model":1}}}"#,
            Some("zzz.schema.model"),
        ),
        (r#"{"schema":{"model":1}}"#, Some("schema.model")),
        (r#"{"metadata":{"model":1}}"#, None),
        (r#"{"choice":{"a":{"models":1}}}"#, Some("choice.a.models")),
        (r#"{"choice":{"a":{"route":1}}}"#, None),
        // The schema of a tool of a known type, or without any, is the client's own.
        (r#"{"tools":[{"schema":{"model":1}}]}"#, None),
        (
            r#"{"tools":[{"schema":{"model":1},"type":"text"},{"type":"zzz","schema":{}}]}"#,
            None,
        ),
        (
            r#"{"tools":[{},{"schema":{"a":[{"model":1}]},"type":"zzz"}]}"#,
            Some("tools[1].schema.a[0].model"),
        ),
        (
            r#"{"tools":{"type":"zzz","content":{"schema":{"model":1}}}}"#,
            Some("tools.content.schema.model"),
        ),
        (
            r#"{"tools":[{"type":"text","schema":{"model":1},"Type":"zzz"}]}"#,
            Some("tools[0].schema.model"),
        ),
        (
            r#"{"tools":[{"type":"zzz","schema":{"model":1},"type":"text"}]}"#,
            Some("tools[0].schema.model"),
        ),
        (
            r#"{"messages":[{"model":"m","zzz":{"model":1}}],"models":null}"#,
            None,
        ),
        (r#"{"a":"\"models\":1"}"#, None),
        (r#"{"a"#, None),
        ("3", None),
    ] {
        assert_eq!(scan(text).other_model.as_deref(), path, "{text}");
    }
}

#[test]
fn a_wanted_field_stands_there_once() {
    let found = scan(r#"{"store":{"detail":1},"tier":null}"#);
    let wanted = found.wanted.iter();
    let written = wanted.map(|field| field.written().map(|raw| raw.get()));
    let written: Vec<Option<&str>> = written.collect();
    assert_eq!(written, [Some("null"), Some(r#"{"detail":1}"#)]);
    assert_eq!(found.refused, None);
    for text in [
        r#"{"tier":1,"tier":2}"#,
        r#"{"Tier":1}"#,
        r#"{"store":1,"\u0073tore":2,"zzz":1}"#,
    ] {
        assert!(scan(text).refused.is_some(), "{text}");
    }
}

#[test]
fn an_item_without_its_content_may_be_a_stored_one() {
    let item = r#"{"messages":[{"type":"reasoning","id":"r"FIELD}]}"#;
    for (field, is_stored) in [
        ("", true),
        (r#","whole":"""#, true),
        (r#","whole":null"#, true),
        (r#","whole":"abc""#, false),
        (r#","type":"text""#, false),
    ] {
        let text = item.replace("FIELD", field);
        assert_eq!(scan(&text).has_stored_item, is_stored, "{text}");
    }
}
