//! Replies of an upstream of this format.

use crate::model::{Fault, Losses, Response};

pub(super) fn decode<'a>(_body: &'a [u8], _losses: &mut Losses) -> Result<Response<'a>, Fault> {
    Err(Fault::bad_gateway("not readable"))
}
