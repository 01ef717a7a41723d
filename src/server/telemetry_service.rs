//! Exports the spans of traced requests, on a runtime that lives until the process ends.

use anyhow::{Context as _, Result};
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};

use crate::config::TelemetryConfig;
use crate::credentials::TokenClient;
use crate::metrics::Metrics;
use crate::telemetry::{ExportClient, Telemetry};

impl ExportClient for TokenClient {
    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, String> {
        TokenClient::send(self, request).await
    }
}

/// What requests leave their spans with, and the runtime that sends them: it goes on while requests drain.
pub(super) struct TelemetryService {
    pub(super) telemetry: Telemetry,
    _tasks: tokio::runtime::Runtime,
}

impl TelemetryService {
    pub(super) fn start(
        settings: &TelemetryConfig,
        metrics: &Arc<Metrics>,
    ) -> Result<TelemetryService> {
        let tasks = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("telemetry")
            .enable_all()
            .build()
            .context("cannot start the runtime of telemetry")?;
        let (telemetry, exporter) = Telemetry::new(settings, TokenClient::default(), metrics);
        tasks.spawn(exporter.run());
        Ok(TelemetryService {
            telemetry,
            _tasks: tasks,
        })
    }
}
