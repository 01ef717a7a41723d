//! The scorecard as JSON.

use serde_json::{Value, json};

use super::Scorecard;
use crate::score::wire::WireFormat;

impl Scorecard {
    pub fn json(&self) -> Value {
        let mut pairs = Vec::new();
        for client in WireFormat::ALL {
            for upstream in WireFormat::ALL {
                let cell = self.cell(client, upstream);
                pairs.push(json!({
                    "client": client.name(), "upstream": upstream.name(), "offered": cell.is_some(),
                    "whole": cell.map(|count| count.whole), "runs": cell.map(|count| count.all)
                }));
            }
        }
        let runs = self.runs.iter().map(|run| {
            let bodies = run.bodies.as_ref().map(|bodies| {
                json!({
                    "client_sent": bodies.client_sent, "upstream_received": bodies.upstream_received,
                    "upstream_sent": bodies.upstream_sent, "client_received": bodies.client_received
                })
            });
            json!({
                "scenario": run.scenario, "client": run.client.name(), "upstream": run.upstream.name(),
                "stream": run.is_stream, "lost": run.verdict.losses, "opinions": run.verdict.opinions,
                "bodies": bodies
            })
        });
        let latencies = self.measured.latencies.iter().map(|latency| {
            json!({
                "client": latency.client.name(), "upstream": latency.upstream.name(),
                "direct_us": latency.direct.as_micros() as u64, "through_us": latency.through.as_micros() as u64
            })
        });
        let total = self.total();
        json!({
            "gateway": self.gateway, "whole": total.whole, "runs": total.all, "percent": total.percent(),
            "pairs": pairs, "results": runs.collect::<Vec<Value>>(), "latency": latencies.collect::<Vec<Value>>(),
            "cpu_us_per_request": self.measured.cpu.map(|cpu| cpu.as_micros() as u64)
        })
    }
}
