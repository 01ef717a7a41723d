//! Requests, read into the model.

use crate::formats::Head;
use crate::model::{Fault, Losses, Request};

pub(super) fn decode<'a>(
    _head: &Head<'_>,
    _body: &'a [u8],
    _losses: &mut Losses,
) -> Result<Request<'a>, Fault> {
    Ok(Request::default())
}
