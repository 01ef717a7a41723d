//! The embedded demo: a gateway in front of the mock backend in the same process.

use std::net::SocketAddr;
use std::path::Path;

use super::{Config, parse};

/// The key that the demo lets in.
pub const DEMO_KEY: &str = "omniglot-demo-key";

const DEMO: &str = include_str!("../../conf/demo.yaml");

/// The config of the demo, with its mock and the folder of its store.
pub fn demo(mock: SocketAddr, folder: &Path) -> Config {
    let env = |name: &str| match name {
        "OMNIGLOT_DEMO_MOCK" => Some(mock.to_string()),
        "OMNIGLOT_DEMO_FOLDER" => Some(folder.display().to_string()),
        _ => None,
    };
    parse("demo.yaml", DEMO, &env).expect("the embedded demo is tested")
}
