//! Omniglot is a model gateway: one API key in front of model upstreams that speak different wire formats.
//!
//! A client sends a request in its own format (`chat`: OpenAI Chat Completions, `responses`: OpenAI Responses,
//! `messages`: Anthropic Messages, `native`: Gemini generateContent, `images`: OpenAI Images). The gateway checks
//! the key, picks an upstream for the model, and passes the body through where both speak the same format. Where
//! they do not, it translates the request, and the response or stream on its way back. It retries on other
//! upstreams, limits rates and spending, and records usage.
//!
//! # The path of a request
//!
//! [`proxy`] implements pingora's `ProxyHttp` for [`proxy::Gateway`]; each step stands in the hook that pingora
//! has for it.
//!
//! | hook | what happens | where |
//! | --- | --- | --- |
//! | `new_ctx` | takes the current snapshot of the config | `proxy/context/`, [`runtime`] |
//! | `request_filter` | endpoint, key, limits, body, model, reservation of the cost; then the forwarding loop | `proxy/request_filter.rs`, [`access`] |
//! | `upstream_peer` | starts the next attempt: its upstream and the address of that | `proxy/forward.rs` |
//! | `upstream_request_filter` | writes the header for the upstream | `proxy/attempt/upstream_request.rs` |
//! | `request_body_filter` | translates the request body | `proxy/attempt/upstream_request.rs`, [`translate`] |
//! | `upstream_response_filter` | decides from the header how the response is translated | `proxy/attempt/upstream_response.rs` |
//! | `response_body_filter` | translates a chunk of the response | `proxy/attempt/upstream_response.rs`, [`translate`] |
//! | `response_filter` | adds the gateway's headers | `proxy/downstream.rs` |
//! | `fail_to_connect`, `error_while_proxy` | decide whether the next attempt follows | `proxy/attempt/retry.rs` |
//! | `fail_to_proxy` | encodes the error in the client's format | `proxy/local.rs` |
//! | `logging` | settles the cost, counts metrics, writes the access log and the spans of a trace | `proxy/billing/settlement.rs`, `proxy/access_log.rs`, `proxy/spans/request_spans.rs` |
//!
//! pingora calls `new_ctx`, `request_filter`, `fail_to_proxy` and `logging`; the forwarding loop in `proxy/forward.rs`
//! calls the others. `proxy/respond.rs` sends the response, and holds its header until a whole JSON body or the
//! first content of a stream is there. docs/architecture.md follows one streaming request from function to function.
//!
//! # Where to start reading
//!
//! 1. `proxy/mod.rs`: the hooks in the order in which they run.
//! 2. [`translate`]: from one format to another, as pure functions over bytes.
//! 3. [`formats`]: one folder for each wire format, with the decoder beside the encoder.
//! 4. [`model`]: a conversation in no format's words, between a decoder and an encoder.
//! 5. [`server`]: how the process starts, reloads and drains.
//!
//! # Floors
//!
//! A module imports only from floors below its own; `tests/structure/floors.rs` holds this table.
//!
//! | floor | modules |
//! | --- | --- |
//! | 8 | [`cli`], [`server`] |
//! | 7 | [`proxy`], [`images`], [`mock`], [`score`], [`admin`], [`console`] |
//! | 6 | [`access`], [`credentials`], [`telemetry`] |
//! | 5 | [`runtime`], [`store`], [`journal`], [`catalog`], [`metrics`] |
//! | 4 | [`translate`], [`config`] |
//! | 3 | [`formats`] |
//! | 2 | [`sse`], [`event_stream`] |
//! | 1 | [`json`] |
//! | 0 | [`model`] |
#![forbid(unsafe_code)]
// Large futures are moved from call to call, and every open stream keeps one.
#![warn(clippy::large_futures)]

pub mod access;
pub mod admin;
pub mod catalog;
pub mod cli;
pub mod config;
pub mod console;
pub mod credentials;
pub mod event_stream;
pub mod formats;
pub mod images;
pub mod journal;
pub mod json;
pub mod metrics;
pub mod mock;
pub mod model;
pub mod proxy;
pub mod runtime;
pub mod score;
pub mod server;
pub mod sse;
pub mod store;
pub mod telemetry;
pub mod translate;
