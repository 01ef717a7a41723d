//! Passes a recording on to the client: bytes that are not read, as they come.

use bytes::Bytes;

use crate::formats::ResponseObserver;
use crate::model::ApiError;

/// Passes a chunk of a recording on, of which so many bytes are a token. `Err`: the recording is over and empty.
pub(super) fn push(
    bytes_per_token: u64,
    bytes: Bytes,
    end: bool,
    observer: &mut ResponseObserver,
    out: &mut Option<Bytes>,
) -> Result<(), ApiError> {
    observer
        .uncounted
        .add_recording(bytes.len(), bytes_per_token);
    observer.has_content |= !bytes.is_empty();
    *out = (!bytes.is_empty()).then_some(bytes);
    if end && !observer.has_content {
        observer.note_end();
        return Err(ApiError::bad_gateway(
            "the upstream answered with an empty recording",
        ));
    }
    observer.ended = end;
    Ok(())
}
