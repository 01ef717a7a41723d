//! Real provider traffic, where a corpus of it is at hand: everything decodes or is refused with a
//! reason, everything re-encodes, and streams give the same wherever they are cut.
//!
//! The corpus stands beside the checkout or where `OMNIGLOT_CORPUS` says, and is never copied in here.

mod corpus;
mod framing;
mod refusals;
mod requests;
mod responses;
mod streams;
mod usage;
