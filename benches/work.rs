//! The three kinds of work: what is asked of every leg, and how a complete answer looks.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use serde_json::{Value, json};

pub const KEY: &str = "bench-key";
pub const MODEL: &str = "bench-model";

const EVENTS: usize = 50;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub enum Work {
    Json,
    Stream,
    Paced,
}

impl Work {
    pub fn title(self) -> &'static str {
        match self {
            Self::Json => "JSON",
            Self::Stream => "50 events",
            Self::Paced => "50 events, 5 ms apart",
        }
    }

    /// The words of the prompt by which the mock knows what to answer.
    fn wish(self) -> &'static str {
        match self {
            Self::Json => "",
            Self::Stream => " mock:events=50",
            Self::Paced => " mock:events=50 mock:pace=5ms",
        }
    }

    fn is_streamed(self) -> bool {
        self != Self::Json
    }
}

/// A request as it goes over the wire, built once and sent many times.
pub struct Request {
    work: Work,
    bytes: Vec<u8>,
}

impl Request {
    pub fn new(work: Work, address: SocketAddr) -> Self {
        let mut body = json!({
            "model": MODEL,
            "messages": [
                {"role": "system", "content": "You are the assistant of a small library. Answer in plain \
                    sentences, name the shelf when you know it, and say so when you do not."},
                {"role": "user", "content": "Do you have anything on the tides of the North Sea?"},
                {"role": "assistant", "content": "Two books, both on shelf 12: an atlas and a history of dikes."},
                {"role": "user", "content": format!("Which of them would you give to a reader of fourteen who \
                    likes maps more than dates, and why?{}", work.wish())},
            ],
            "temperature": 0.2,
            "max_tokens": 256,
        });
        if work.is_streamed() {
            body["stream"] = json!(true);
        }
        let body = body.to_string();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {KEY}\r\n\
             content-type: application/json\r\naccept: */*\r\nuser-agent: omniglot-bench\r\n\
             content-length: {}\r\n\r\n",
            body.len()
        );
        let bytes = [head, body].concat().into_bytes();
        Self { work, bytes }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The check of every answer: cheap, so that the load leaves the cores to the processes under test.
    pub fn check_end(&self, answer: &[u8]) -> Result<()> {
        let answer = answer.trim_ascii_end();
        if self.work.is_streamed() {
            ensure!(
                answer.ends_with(b"data: [DONE]"),
                "a stream without [DONE] at its end"
            );
        } else {
            ensure!(answer.ends_with(b"}"), "a JSON answer without its end");
        }
        Ok(())
    }

    /// The check of the first answer of a leg: that it is what was asked for.
    pub fn check_whole(&self, answer: &[u8]) -> Result<()> {
        self.check_end(answer)?;
        if !self.work.is_streamed() {
            let answer: Value = serde_json::from_slice(answer)?;
            let content = &answer["choices"][0]["message"]["content"];
            ensure!(content.is_string(), "no content in {answer}");
            return Ok(());
        }
        let mut deltas = 0;
        for line in str::from_utf8(answer)?.lines() {
            let Some(data) = line.strip_prefix("data: ").filter(|data| *data != "[DONE]") else {
                continue;
            };
            let event: Value = serde_json::from_str(data).with_context(|| data.to_owned())?;
            let content = event["choices"][0]["delta"]["content"].as_str();
            deltas += usize::from(content.is_some_and(|text| !text.is_empty()));
        }
        ensure!(
            deltas == EVENTS,
            "{deltas} content deltas instead of {EVENTS}"
        );
        Ok(())
    }
}
