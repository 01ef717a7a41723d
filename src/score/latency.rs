//! What a gateway adds: time, against the same request straight to the upstream, and CPU.

use std::time::{Duration, Instant};

use http::Uri;

use super::driver::Driver;
use super::http_client::ScoreConnection;
use super::said::{SaidAnswer, SaidPart, SaidRequest, SaidTurn};
use super::upstream::{RunPlan, StrictUpstream};
use super::wire::WireFormat;

/// Requests of each pair, one after the other on one connection.
const REQUESTS: usize = 40;
/// The first ones open connections.
const WARM_UP: usize = 8;
const PATIENCE: Duration = Duration::from_secs(30);

/// The median of a pair.
#[derive(Debug, Clone, Copy)]
pub struct PairLatency {
    pub client: WireFormat,
    pub upstream: WireFormat,
    /// To the upstream itself, in its format.
    pub direct: Duration,
    pub through: Duration,
}

/// All that was measured.
#[derive(Debug, Clone, Default)]
pub struct Measurement {
    pub latencies: Vec<PairLatency>,
    /// CPU time of the process for one request.
    pub cpu: Option<Duration>,
}

/// Measures every pair that gives a response.
pub async fn measure(driver: &Driver, upstream: &Uri, pid: Option<u32>) -> Measurement {
    let mut measured = Measurement::default();
    let before = pid.and_then(cpu_time);
    let mut count = 0;
    for &format in driver.gateway.models.keys() {
        let Some(direct) = median(driver, upstream, format, format).await else {
            continue;
        };
        for client in WireFormat::ALL {
            let through = median(driver, &driver.gateway.url, client, format).await;
            if let Some(through) = through {
                count += REQUESTS;
                measured.latencies.push(PairLatency {
                    client,
                    upstream: format,
                    direct,
                    through,
                });
            }
        }
    }
    let after = pid.and_then(cpu_time);
    if let (Some(before), Some(after)) = (before, after) {
        let used = after.saturating_sub(before);
        measured.cpu = (count > 0).then(|| used / u32::try_from(count).unwrap_or(u32::MAX));
    }
    measured
}

async fn median(
    driver: &Driver,
    url: &Uri,
    client: WireFormat,
    upstream: WireFormat,
) -> Option<Duration> {
    let mut connection = ScoreConnection::open(url, &driver.gateway.headers)
        .await
        .ok()?;
    let model = driver.gateway.models.get(&upstream)?;
    let mut times = Vec::new();
    for number in 0..REQUESTS {
        let run = driver.new_run();
        let text = format!("{}Hi", StrictUpstream::mark(run));
        let said = SaidRequest {
            turns: vec![SaidTurn::User(vec![SaidPart::Text(text)])],
            ..SaidRequest::default()
        };
        let answer = SaidAnswer {
            text: Some("Hello.".to_owned()),
            ..SaidAnswer::default()
        };
        driver.upstream.plan(
            run,
            RunPlan {
                answer,
                ..RunPlan::default()
            },
        );
        let request = client.request(&said, model, &driver.gateway.key, false);
        let begun = Instant::now();
        let reply = connection.send(&request, PATIENCE).await;
        let time = begun.elapsed();
        driver.upstream.take(run);
        if reply.ok()?.status != 200 {
            return None;
        }
        if number >= WARM_UP {
            times.push(time);
        }
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied()
}

/// The CPU time of a process: fields 14 and 15 of its `stat`, in hundredths of a second.
fn cpu_time(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let user: u64 = fields.get(11)?.parse().ok()?;
    let system: u64 = fields.get(12)?.parse().ok()?;
    Some(Duration::from_millis((user + system) * 10))
}
