//! What asks upstreams beside the requests of clients: health checks, lists of models, live checks.

mod background_client;
pub(super) mod discovery;
pub(super) mod health_check;
pub(super) mod listed_models;
pub(super) mod live_check;
