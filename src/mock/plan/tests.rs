//! Directives in prompts and model names, and the plans they make.

use super::*;
use crate::model::{Output, Part, Turn};

fn turn(role: Role, kinds: Vec<PartKind<'static>>) -> Turn<'static> {
    let parts = kinds
        .into_iter()
        .map(|kind| Part { kind, at: None })
        .collect();
    Turn {
        role,
        parts,
        at: None,
    }
}

fn user(text: &'static str) -> Turn<'static> {
    turn(Role::User, vec![PartKind::Text(text.into())])
}

fn result(name: &'static str, text: &'static str) -> Turn<'static> {
    let parts = vec![Part {
        kind: PartKind::Text(text.into()),
        at: None,
    }];
    let result = ToolResult {
        id: None,
        name: Some(name.into()),
        parts,
        failed: false,
    };
    turn(Role::User, vec![PartKind::Result(result)])
}

fn request(turns: Vec<Turn<'static>>) -> Request<'static> {
    Request {
        turns,
        ..Request::default()
    }
}

fn plan(text: &'static str) -> ResponsePlan {
    ResponsePlan::for_request(&request(vec![user(text)]), "demo").expect("known directives")
}

fn text(text: &str) -> PlannedContent {
    PlannedContent::Text(text.to_owned())
}

#[test]
fn without_words_the_prompt_is_repeated() {
    assert_eq!(plan("hello").content, text("You said: hello"));
    assert_eq!(
        plan("one mock:pace=5ms two").content,
        text("You said: one two")
    );
    let PlannedContent::Text(text) = ResponsePlan::for_prompt(&"é".repeat(5000), "demo")
        .unwrap()
        .content
    else {
        panic!("a text");
    };
    assert_eq!(text.chars().count(), "You said: ".len() + 1001);
}

#[test]
fn only_the_last_user_text_counts() {
    let turns = vec![
        turn(Role::System, vec![PartKind::Text("mock:error=500".into())]),
        user("mock:tool"),
        turn(Role::Model, vec![PartKind::Text("mock:empty".into())]),
        user("thanks"),
    ];
    let plan = ResponsePlan::for_request(&request(turns), "demo").unwrap();
    assert_eq!(plan.content, text("You said: thanks"));
    assert_eq!(plan.failure, None);
}

#[test]
fn words_of_the_model_count_when_the_prompt_has_none() {
    let asked = request(vec![user("hello")]);
    let plan = ResponsePlan::for_request(&asked, "demo+tools+error=503,later").unwrap();
    assert_eq!(
        plan.content,
        PlannedContent::Calls(vec![PlannedCall::default()])
    );
    assert_eq!(
        plan.failure,
        Some(PlannedFailure::Error {
            status: 503,
            message: Some("later".to_owned())
        })
    );
    let steered = request(vec![user("mock:length hi")]);
    let plan = ResponsePlan::for_request(&steered, "demo+error=503").unwrap();
    assert_eq!((plan.failure, plan.finish), (None, PlannedFinish::Length));
}

#[test]
fn tool_results_end_the_loop_unless_new_words_follow() {
    let called = vec![user("mock:tool"), turn(Role::Model, vec![])];
    let results = [result("get_weather", "sunny"), result("get_time", "noon")];
    let looped = [called.clone(), results.to_vec()].concat();
    let named = "The tools answered: get_weather gave sunny; get_time gave noon.";
    for model in ["demo", "demo+tool"] {
        let plan = ResponsePlan::for_request(&request(looped.clone()), model).unwrap();
        assert_eq!(plan.content, text(named), "{model}");
    }
    let again = [looped, vec![user("mock:parallel=3")]].concat();
    let plan = ResponsePlan::for_request(&request(again), "demo").unwrap();
    assert_eq!(
        plan.content,
        PlannedContent::Calls(vec![PlannedCall::default(); 3])
    );
}

#[test]
fn what_the_request_demands_is_given_unasked() {
    let mut asked = request(vec![user("hello")]);
    asked.output = Output {
        format: OutputFormat::Json,
        ..Output::default()
    };
    let shaped = ResponsePlan::for_request(&asked, "demo").unwrap();
    assert_eq!(shaped.content, PlannedContent::OutputFormat);
    asked.tool_choice = Some(ToolChoice::Required);
    let forced = ResponsePlan::for_request(&asked, "demo").unwrap();
    assert!(matches!(forced.content, PlannedContent::Calls(_)));
    asked.turns = vec![user("mock:text=no tools")];
    let told = ResponsePlan::for_request(&asked, "demo").unwrap();
    assert_eq!(told.content, text("no tools"));
}

#[test]
fn values_are_read() {
    let plan = plan(
        "mock:usage=10,4,7,2 mock:events=20 mock:slow=250ms mock:pace=5ms mock:cut=3 mock:wait=a \
         mock:name=b mock:stream_error=2 mock:thinking mock:gzip mock:headers mock:no_end mock:now",
    );
    let usage = plan.usage.unwrap();
    assert_eq!(
        (usage.input, usage.cached, usage.output, usage.thinking),
        (10, 4, 7, 2)
    );
    assert_eq!(plan.content, PlannedContent::Long(20));
    assert_eq!(plan.stream_error, Some(2));
    assert!(plan.thinking && plan.no_end && plan.now);
    let expected = DeliveryPlan {
        slow: Some(Duration::from_millis(250)),
        pace: Some(Duration::from_millis(5)),
        cut: Some(3),
        wait: Some("a".to_owned()),
        name: Some("b".to_owned()),
        vendor_headers: true,
        gzip: true,
    };
    assert_eq!(plan.delivery, expected);
}

#[test]
fn faults_are_told_apart() {
    let cases = [
        ("mock:html", PlannedFailure::Html),
        ("mock:garbage", PlannedFailure::Garbage { after: 0 }),
        ("mock:garbage=2", PlannedFailure::Garbage { after: 2 }),
        ("mock:empty", PlannedFailure::Empty),
        ("mock:redirect", PlannedFailure::Redirect),
        ("mock:status_200_error", PlannedFailure::ErrorAsSuccess),
    ];
    for (words, instead) in cases {
        assert_eq!(plan(words).failure, Some(instead), "{words}");
    }
}

#[test]
fn words_that_cannot_be_read_are_refused() {
    for words in [
        "mock:nonsense",
        "mock:usage=1,2",
        "mock:pace=soon",
        "mock:error=200",
        "mock:wait",
        "mock:arguments={}",
        "mock:",
    ] {
        let api_error = ResponsePlan::for_request(&request(vec![user(words)]), "demo").unwrap_err();
        assert_eq!(api_error.status, 400, "{words}");
    }
}
