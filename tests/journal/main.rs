//! What requests took, over real sockets: in the journal before their last byte, in the store once.

#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/asking.rs"]
mod asking;
#[allow(dead_code, reason = "shared with the store's tests")]
#[path = "../private/postgres.rs"]
mod postgres;
#[allow(dead_code, reason = "shared with the gateway's own tests")]
#[path = "../gateway/stage.rs"]
mod stage;

mod kill;
mod ledger;
mod life;
mod load;
mod outage;
mod reading;
mod receipts;
