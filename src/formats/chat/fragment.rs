//! The units that a message of a response, or a delta of one, is decoded into.

use super::calls::CallFragment;
use crate::model::{Citation, Media, Signature, Text};

/// One unit of a message or a delta, whatever the dialect of the upstream.
pub(super) enum ChatFragment<'a> {
    Reasoning(Text<'a>),
    /// The signature of the reasoning before it.
    Signature(Signature<'a>),
    /// The signature of the call with this id.
    CallSignature {
        id: Text<'a>,
        signature: Signature<'a>,
    },
    /// A signature of an unknown issuer, which cannot be used anywhere.
    ForeignSignature,
    Text(Text<'a>),
    Refusal(Text<'a>),
    Media(Media<'a>),
    Call(CallFragment<'a>),
    Citation(Citation<'a>),
}
