//! Processes, clients, upstreams, certificates and databases for the tests that start the gateway.

#![forbid(unsafe_code)]

mod config;
mod connect_proxy;
mod database;
mod demo_ports;
mod gateway;
mod http1;
mod mock;
mod postgres;
mod process;
mod provider_hosts;
mod recording_server;
mod redis;
mod requests;
mod smtp;
mod stream_events;
mod tcp_proxy;
mod tls;
mod upstreams;
mod wait;

pub use config::{FORMATS, KEY, every_format_config, single_upstream_config};
pub use connect_proxy::ConnectProxy;
pub use database::Database;
pub use demo_ports::DemoPorts;
pub use gateway::Gateway;
pub use http1::{
    Http1Connection, Http1Message, Http1Upstream, find_bytes, http1_post, http1_post_head,
};
pub use mock::Mock;
pub use postgres::{Postgres, postgres_url};
pub use process::{Process, Stderr, free_address, omniglot};
pub use provider_hosts::ProviderHosts;
pub use recording_server::{RecordedRequest, RecordingServer};
pub use redis::Redis;
pub use requests::{
    Response, client, client_builder, echoed_request, error_message, new_client, post, request,
    response_text, send,
};
pub use smtp::{ReceivedMail, SmtpServer};
pub use stream_events::{
    NATIVE_ARRAY, STREAM_KINDS, assert_error_event, format_of, is_end, is_error, sse_events,
    stream_events,
};
pub use tcp_proxy::TcpProxy;
pub use tls::{CertificateAuthority, TlsProxy};
pub use upstreams::{
    echo_upstream, fixed_response_upstream, gateway_with_fixed_responses, response_head,
};
pub use wait::{TIMEOUT, wait_for, wait_until};
