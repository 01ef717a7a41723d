//! Requests to an upstream of this format.

use crate::formats::Target;
use crate::model::{Fault, Losses, Place, Request};

pub(super) fn encode(
    _request: &Request<'_>,
    _target: &Target<'_>,
    _losses: &mut Losses,
) -> Result<Vec<u8>, Fault> {
    Ok(Vec::new())
}

pub(super) fn path_of(_place: &Place) -> String {
    String::new()
}
