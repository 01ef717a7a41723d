//! Lists in each shape, and the edges of their pages.

use serde_json::Value;

use super::*;
use crate::config::{Amount, Balance, ModelOrigin, Pricing, Retries, TimeoutChanges};
use crate::model::Money;

fn plain(id: &str) -> ModelConfig {
    ModelConfig {
        id: id.to_owned(),
        aliases: Vec::new(),
        origin: ModelOrigin::Listed,
        provider: "acme".to_owned(),
        model_type: "chat".to_owned(),
        features: Vec::new(),
        pricing: Pricing::default(),
        api_doc_url: None,
        max_output_tokens: None,
        max_input_tokens: None,
        max_image_tokens: None,
        max_audio_minutes: None,
        capabilities: Vec::new(),
        upstreams: Vec::new(),
        fallbacks: Vec::new(),
        balance: Balance::default(),
        retries: Retries::default(),
        timeouts: TimeoutChanges::default(),
    }
}

fn entry(model: &ModelConfig) -> CatalogEntry<'_> {
    CatalogEntry {
        id: &model.id,
        model,
    }
}

fn entries<'a>(models: &[&'a ModelConfig]) -> Vec<CatalogEntry<'a>> {
    models.iter().map(|model| entry(model)).collect()
}

fn amount(written: &str) -> Amount {
    Amount {
        written: written.to_owned(),
        money: Money::parse(written).expect("an amount"),
    }
}

fn large() -> ModelConfig {
    ModelConfig {
        features: vec!["tools".to_owned(), "thinking".to_owned()],
        pricing: Pricing {
            currency: Some("EUR per 1M tokens".to_owned()),
            input: Some(amount("1.25")),
            output: Some(amount("10.0")),
            per_second: Some(amount("00.5")),
            cached_input: Some(amount("0.125")),
            thinking: Some(amount("12")),
            ..Pricing::default()
        },
        api_doc_url: Some("https://docs.acme.example/large".to_owned()),
        max_output_tokens: Some(8192),
        ..plain("acme/large")
    }
}

fn numbered(count: usize) -> Vec<ModelConfig> {
    (0..count).map(|n| plain(&format!("m{n}"))).collect()
}

fn text(body: Result<Vec<u8>, ApiError>) -> String {
    String::from_utf8(body.expect("a list")).expect("UTF-8")
}

fn parsed(body: Result<Vec<u8>, ApiError>) -> Value {
    serde_json::from_str(&text(body)).expect("JSON")
}

fn field_of_each(page: &Value, list: &str, field: &str) -> Vec<String> {
    let records = page[list].as_array().expect("a list");
    let field = |record: &Value| record[field].as_str().expect("text").to_owned();
    records.iter().map(field).collect()
}

fn refused_param(body: Result<Vec<u8>, ApiError>) -> String {
    let api_error = body.expect_err("a refusal");
    assert_eq!(api_error.status, 400);
    api_error.param.clone().expect("a named parameter")
}

#[test]
fn public_records_hold_prices_as_written() {
    let (large, small) = (large(), plain("small"));
    assert_eq!(
        text(public_page(&entries(&[&large, &small]), None)),
        concat!(
            r#"{"success":true,"page":1,"page_size":50,"total":2,"data":["#,
            r#"{"id":"acme/large","provider":"acme","model_type":"chat","features":["tools","thinking"],"#,
            r#""pricing":{"currency":"EUR per 1M tokens","input":1.25,"output":10.0,"per_request":null,"per_second":0.5,"cached_input":0.125,"thinking":12},"#,
            r#""api_doc_url":"https://docs.acme.example/large"},"#,
            r#"{"id":"small","provider":"acme","model_type":"chat","features":[],"#,
            r#""pricing":{"currency":"USD per 1M tokens","input":null,"output":null,"per_request":null,"per_second":null},"#,
            r#""api_doc_url":null}]}"#,
        )
    );
}

#[test]
fn every_spelling_of_an_amount_becomes_a_json_number() {
    for (written, shown) in [
        ("0", "0"),
        ("00", "0"),
        ("000.10", "0.10"),
        ("0.000000001", "0.000000001"),
        ("010.50", "10.50"),
        ("999999999.999999999", "999999999.999999999"),
    ] {
        let number = json_number(&amount(written)).expect(written);
        assert_eq!(number.get(), shown, "{written}");
        serde_json::from_str::<serde_json::Number>(number.get()).expect("a number");
    }
}

#[test]
fn public_pages_together_hold_every_model_once() {
    for (count, page_size) in [(0, 7), (1, 1), (5, 2), (6, 3), (501, 500), (120, 50)] {
        let models = numbered(count);
        let models: Vec<CatalogEntry<'_>> = models.iter().map(entry).collect();
        let mut seen = Vec::new();
        for page in 1..=count.div_ceil(page_size) + 1 {
            let query = format!("page_size={page_size}&page={page}");
            let page = parsed(public_page(&models, Some(&query)));
            assert_eq!(page["total"], count);
            seen.extend(field_of_each(&page, "data", "id"));
        }
        let all: Vec<&str> = models.iter().map(|entry| entry.id).collect();
        assert_eq!(seen, all, "{count} models, {page_size} a page");
    }
}

#[test]
fn public_paging_refuses_other_values_by_name() {
    for value in [
        "0",
        "-1",
        "two",
        "",
        "1.0",
        "%2B1",
        "+1",
        "99999999999999999999",
        "%ff",
    ] {
        let query = format!("page={value}");
        assert_eq!(
            refused_param(public_page(&[], Some(&query))),
            "page",
            "{value}"
        );
        let query = format!("page=1&page_size={value}");
        assert_eq!(
            refused_param(public_page(&[], Some(&query))),
            "page_size",
            "{value}"
        );
    }
    assert_eq!(
        refused_param(public_page(&[], Some("page_size=501"))),
        "page_size"
    );
    assert_eq!(
        text(public_page(
            &entries(&[&large()]),
            Some("beta=true&p%61ge=%32&page_size=500&x")
        )),
        r#"{"success":true,"page":2,"page_size":500,"total":1,"data":[]}"#
    );
    let far = format!("page={LAST_PAGE_NUMBER}&page_size=500");
    assert_eq!(
        parsed(public_page(&entries(&[&large()]), Some(&far)))["data"],
        Value::Array(vec![])
    );
}

#[test]
fn chat_and_responses_clients_read_the_same_list() {
    let record = r#"{"id":"acme/large","object":"model","created":0,"owned_by":"acme"}"#;
    for shape in [Format::Chat, Format::Responses] {
        let listed = text(list(shape, &entries(&[&large()]), Some("limit=none")));
        assert_eq!(listed, format!(r#"{{"object":"list","data":[{record}]}}"#));
        assert_eq!(single(shape, entry(&large())), record.as_bytes());
    }
}

#[test]
fn messages_records_name_every_field_of_the_sdk() {
    let record = concat!(
        r#"{"type":"model","id":"acme/large","display_name":"acme/large","created_at":"1970-01-01T00:00:00Z","#,
        r#""lifecycle":"active","deprecated_at":null,"retires_at":null,"line":null,"capabilities":null,"#,
        r#""max_input_tokens":null,"max_tokens":8192}"#,
    );
    assert_eq!(single(Format::Messages, entry(&large())), record.as_bytes());
    assert_eq!(
        text(list(Format::Messages, &entries(&[&large()]), None)),
        format!(
            r#"{{"data":[{record}],"has_more":false,"first_id":"acme/large","last_id":"acme/large"}}"#
        )
    );
    assert_eq!(
        text(list(Format::Messages, &[], None)),
        r#"{"data":[],"has_more":false,"first_id":null,"last_id":null}"#
    );
}

/// Pages as the SDK does: on from `last_id`, or back from `first_id`.
fn messages_walk(
    models: &[CatalogEntry<'_>],
    limit: usize,
    cursor: &str,
    edge: &str,
) -> Vec<Vec<String>> {
    let mut pages = Vec::new();
    let mut from = match cursor {
        "before_id" => format!("&before_id={}", models[models.len() - 1].id),
        _ => String::new(),
    };
    while pages.len() < models.len() {
        let query = format!("limit={limit}{from}");
        let page = parsed(list(Format::Messages, models, Some(&query)));
        pages.push(field_of_each(&page, "data", "id"));
        if page["has_more"] == false {
            return pages;
        }
        from = format!("&{cursor}={}", page[edge].as_str().expect("an id"));
    }
    panic!("more pages than models: {pages:?}")
}

#[test]
fn messages_pages_together_hold_every_model_once_in_both_directions() {
    let models = numbered(41);
    let models: Vec<CatalogEntry<'_>> = models.iter().map(entry).collect();
    let all: Vec<&str> = models.iter().map(|entry| entry.id).collect();
    for limit in [1, 2, 20, 40, 41, 1000] {
        let pages = messages_walk(&models, limit, "after_id", "last_id");
        assert_eq!(pages.len(), 41_usize.div_ceil(limit));
        assert_eq!(pages.concat(), all, "{limit} a page");
        let mut pages = messages_walk(&models, limit, "before_id", "first_id");
        assert_eq!(pages.len(), 40_usize.div_ceil(limit));
        pages.reverse();
        assert_eq!(pages.concat(), all[..40], "{limit} a page, backwards");
    }
    let page = parsed(list(Format::Messages, &models, None));
    assert_eq!(field_of_each(&page, "data", "id"), all[..20]);
}

#[test]
fn messages_paging_refuses_what_it_cannot_follow() {
    let large = large();
    for (query, param) in [
        ("limit=0", "limit"),
        ("limit=1001", "limit"),
        ("limit=", "limit"),
        ("after_id=gone", "after_id"),
        ("before_id=gone", "before_id"),
        ("after_id=acme/large&before_id=acme%2Flarge", "before_id"),
        ("lifecycle=new", "lifecycle"),
    ] {
        let refused = list(Format::Messages, &entries(&[&large]), Some(query));
        assert_eq!(refused_param(refused), param, "{query}");
    }
    for (query, count) in [
        ("lifecycle=deprecated&lifecycle=active", 1),
        ("lifecycle%5B%5D=active", 1),
        ("lifecycle=deprecated,retired", 0),
        ("lifecycle=retired&before_id=acme/large", 0),
        ("lifecycle=retired&after_id=acme/large", 0),
    ] {
        let page = parsed(list(Format::Messages, &entries(&[&large]), Some(query)));
        assert_eq!(field_of_each(&page, "data", "id").len(), count, "{query}");
    }
}

#[test]
fn native_records_leave_out_what_is_not_known() {
    let methods = r#"["generateContent","streamGenerateContent","countTokens"]"#;
    let full = format!(
        r#"{{"name":"models/acme/large","version":"1","displayName":"acme/large","description":"chat model of acme","outputTokenLimit":8192,"supportedGenerationMethods":{methods},"thinking":true}}"#
    );
    let bare = format!(
        r#"{{"name":"models/small","version":"1","displayName":"small","description":"chat model of acme","supportedGenerationMethods":{methods}}}"#
    );
    let (large, small) = (large(), plain("small"));
    assert_eq!(single(Format::Native, entry(&large)), full.as_bytes());
    assert_eq!(
        text(list(
            Format::Native,
            &entries(&[&large, &small]),
            Some("pageSize=2")
        )),
        format!(r#"{{"models":[{full},{bare}]}}"#)
    );
    assert_eq!(
        text(list(
            Format::Native,
            &entries(&[&large, &small]),
            Some("pageSize=1")
        )),
        format!(r#"{{"models":[{full}],"nextPageToken":"YWNtZS9sYXJnZQ"}}"#)
    );
}

#[test]
fn native_pages_together_hold_every_model_once() {
    let models = numbered(1001);
    let models: Vec<CatalogEntry<'_>> = models.iter().map(entry).collect();
    let all: Vec<&str> = models.iter().map(|entry| entry.id).collect();
    for (size, token, pages) in [
        ("pageSize=91", "pageToken", 11),
        ("page_size=1", "page_token", 1001),
        ("pageSize=0", "pageToken", 21),
        ("pageSize=1000", "pageToken", 2),
        ("pageSize=5000", "pageToken", 2),
    ] {
        let (mut seen, mut query) = (Vec::new(), format!("{size}&{token}="));
        for number in 1..=pages {
            let page = parsed(list(Format::Native, &models, Some(&query)));
            seen.extend(field_of_each(&page, "models", "displayName"));
            let next = page["nextPageToken"].as_str();
            assert_eq!(next.is_some(), number < pages, "{size}, page {number}");
            query = format!("{size}&{token}={}", next.unwrap_or_default());
        }
        assert_eq!(seen, all, "{size}");
    }
}

#[test]
fn native_paging_refuses_what_it_cannot_follow() {
    for (query, param) in [
        ("pageSize=-1", "pageSize"),
        ("page_size=many", "page_size"),
        ("pageSize=2147483648", "pageSize"),
        ("pageToken=%21", "pageToken"),
        ("page_token=Z29uZQ", "page_token"),
    ] {
        let refused = list(Format::Native, &entries(&[&large()]), Some(query));
        assert_eq!(refused_param(refused), param, "{query}");
    }
}
