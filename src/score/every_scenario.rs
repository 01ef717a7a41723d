//! The scenarios of this binary.

use super::golden;
use super::scenario::Scenario;
use super::scenario_files::SCENARIOS;

impl Scenario {
    /// Those of the files, then those of the golden cases.
    pub fn all() -> Vec<Scenario> {
        let parse = |(name, text): &(&str, &str)| match Scenario::parse(text) {
            Ok(scenario) => scenario,
            Err(reason) => panic!("the embedded scenario {name} is tested: {reason}"),
        };
        let mut all: Vec<Scenario> = SCENARIOS.iter().map(parse).collect();
        all.extend(golden::scenarios());
        all
    }
}
