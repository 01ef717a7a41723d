//! Usage records over real sockets: in the journal before the last byte of the response, in the store once.

mod database_outage;
mod killed_gateway;
mod last_event;
mod load;
mod restarts;
mod usage_records;
mod usage_store;
