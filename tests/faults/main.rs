//! What goes wrong at every place of the way, in every pair of formats, and that nothing is left of it.

#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/asking.rs"]
mod asking;
#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/secure.rs"]
mod secure;
#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/stage.rs"]
mod stage;
#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/told.rs"]
mod told;
#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/wire.rs"]
mod wire;

mod clients;
mod drips;
mod kill;
mod kinds;
mod matrix;
mod outbound;
mod puppet;
mod recorded;
mod resets;
