//! What requests took, over real sockets: in the journal before their last byte, in the books once.

#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/asking.rs"]
mod asking;
#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/stage.rs"]
mod stage;

mod kill;
mod ledger;
mod life;
mod reading;
mod receipts;
