//! What requests took, over real sockets: in the journal before their last byte, in the store once.

mod kill;
mod ledger;
mod life;
mod load;
mod outage;
mod reading;
mod receipts;
