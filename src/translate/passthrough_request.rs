//! Takes out of a request that passes through what its upstream would refuse.

use bytes::Bytes;

use crate::formats::{Capabilities, Codec};
use crate::json::{ChunkedBytes, splice};
use crate::model::{FieldLocation, Losses, Signature};

/// The edited body of a request, without the fields that the upstream refuses and without signatures that another one
/// issued.
pub fn without_refused(
    codec: &dyn Codec,
    body: &[u8],
    edited: ChunkedBytes,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> ChunkedBytes {
    let edited = without_unsupported(codec, body, edited, capabilities, losses);
    if !Signature::may_be_in(body) {
        return edited;
    }
    let whole = edited.into_bytes();
    let text = std::str::from_utf8(&whole).unwrap_or_default();
    splice(&whole, &codec.strip_foreign_signatures(text, losses))
}

/// The edited body without the fields that the upstream refuses. Those of the client are reported, not those that the
/// edits added.
fn without_unsupported(
    codec: &dyn Codec,
    body: &[u8],
    edited: ChunkedBytes,
    capabilities: &Capabilities,
    losses: &mut Losses,
) -> ChunkedBytes {
    if !capabilities.changes_passthrough() {
        return edited;
    }
    let own = str::from_utf8(body).unwrap_or_default();
    codec.remove_unsupported(own, capabilities, &mut |path| {
        losses.dropped(FieldLocation::Path(path.into()));
    });
    let edited = edited.into_bytes();
    let text = str::from_utf8(&edited).unwrap_or_default();
    let shorter = codec.remove_unsupported(text, capabilities, &mut |_| {});
    shorter.map_or(edited, Bytes::from).into()
}
