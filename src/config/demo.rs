//! The embedded demo: a gateway in front of the mock backend in the same process.

use std::net::SocketAddr;

use super::{Config, parse};

/// The key that the demo lets in.
pub const DEMO_KEY: &str = "omniglot-demo-key";

const DEMO: &str = include_str!("../../conf/demo.yaml");

pub fn demo(mock: SocketAddr) -> Config {
    let env = |name: &str| (name == "OMNIGLOT_DEMO_MOCK").then(|| mock.to_string());
    parse("demo.yaml", DEMO, &env).expect("the embedded demo is tested")
}
