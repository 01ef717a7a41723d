//! Requests, read into the model.

use crate::model::{Fault, Losses, Request};

pub(super) fn decode<'a>(_body: &'a [u8], _losses: &mut Losses) -> Result<Request<'a>, Fault> {
    Ok(Request::default())
}
