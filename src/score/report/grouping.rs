//! The same loss in many pairs is one entry.

use std::collections::BTreeMap;

use super::Scorecard;
use crate::score::driver::ScoredRun;
use crate::score::exchange::ExchangeBodies;
use crate::score::wire::WireFormat;

/// One loss of one scenario, and where it is seen.
pub struct LossEntry<'r> {
    pub scenario: &'r str,
    pub loss: &'r str,
    /// `chat → native`, with the form where it is only one.
    pub places: Vec<String>,
    /// Of the first place.
    pub bodies: Option<&'r ExchangeBodies>,
}

/// Losses, or opinions, by scenario.
pub fn entries<'r>(
    card: &'r Scorecard,
    of: impl Fn(&'r ScoredRun) -> &'r [String],
) -> Vec<LossEntry<'r>> {
    let mut grouped: BTreeMap<(&str, &str), Vec<&ScoredRun>> = BTreeMap::new();
    for run in card.counted() {
        for loss in of(run) {
            grouped.entry((&run.scenario, loss)).or_default().push(run);
        }
    }
    let entries = grouped
        .into_iter()
        .map(|((scenario, loss), runs)| LossEntry {
            scenario,
            loss,
            places: places(&runs),
            bodies: runs.iter().find_map(|run| run.bodies.as_ref()),
        });
    entries.collect()
}

fn places(runs: &[&ScoredRun]) -> Vec<String> {
    let mut pairs: BTreeMap<(WireFormat, WireFormat), Vec<bool>> = BTreeMap::new();
    for run in runs {
        let pair = (run.client, run.upstream);
        pairs.entry(pair).or_default().push(run.is_stream);
    }
    let mut places = Vec::new();
    for ((client, upstream), forms) in pairs {
        let form = match forms.as_slice() {
            [true] => ", stream",
            [false] => ", JSON",
            _ => "",
        };
        places.push(format!("{} → {}{form}", client.name(), upstream.name()));
    }
    places
}

/// Whether a loss is about the response, so that these bodies show it.
pub fn is_of_response(loss: &str) -> bool {
    !loss.starts_with("request")
}

/// Which two bodies show a loss, with their titles.
pub fn two_bodies<'b>(loss: &str, bodies: &'b ExchangeBodies) -> [(&'static str, &'b str); 2] {
    match is_of_response(loss) {
        true => [
            ("upstream sent", &bodies.upstream_sent),
            ("client received", &bodies.client_received),
        ],
        false => [
            ("client sent", &bodies.client_sent),
            ("upstream received", &bodies.upstream_received),
        ],
    }
}
