//! A JSON reply: gathered, read once, sent with the client's name for the model.

use bytes::Bytes;

use super::RequestSummary;
use super::count;
use super::gather::BodyBuffer;
use super::meter;
use super::proofs;
use super::reply::too_long;
use super::undo;
use crate::formats::{Operation, ResponseObserver, ResponseOptions, to_json_string};
use crate::json::{ChunkedBytes, Edit, splice};
use crate::model::{ApiError, Format, Losses, SignedParts};

pub(super) struct Whole {
    reading: Reading,
    gathered: BodyBuffer,
    proofs: Option<SignedParts>,
    losses: Losses,
    /// What comes after the first piece of a long one.
    rest: ChunkedBytes,
}

/// What is done with the document when all of it is there.
enum Reading {
    /// The client's own format: only the model's name may change, to this JSON string.
    Same(Format, Vec<u8>),
    Translated {
        from: Format,
        to: Format,
        asked: ResponseOptions,
    },
    /// A count of tokens is no reply of a model.
    Counted { from: Format, to: Format },
}

impl Whole {
    pub(super) fn new(
        client: Format,
        upstream: Format,
        wanted: &RequestSummary,
        asked: ResponseOptions,
    ) -> Whole {
        let reading = if wanted.operation == Operation::CountTokens {
            Reading::Counted {
                from: upstream,
                to: client,
            }
        } else if client == upstream {
            Reading::Same(client, to_json_string(&wanted.model))
        } else {
            Reading::Translated {
                from: upstream,
                to: client,
                asked,
            }
        };
        Whole {
            reading,
            gathered: BodyBuffer::default(),
            proofs: None,
            losses: Losses::default(),
            rest: ChunkedBytes::default(),
        }
    }

    pub(super) fn expect(&mut self, length: usize) {
        self.gathered = BodyBuffer::with_expected_length(length);
    }

    pub(super) fn is_translated(&self) -> bool {
        match self.reading {
            Reading::Same(..) => false,
            Reading::Translated { .. } => true,
            Reading::Counted { from, to } => from != to,
        }
    }

    pub(super) fn push(
        &mut self,
        bytes: Bytes,
        end: bool,
        limit: usize,
        observer: &mut ResponseObserver,
        out: &mut Option<Bytes>,
    ) -> Result<(), ApiError> {
        self.gathered.push(bytes);
        if self.gathered.len() > limit {
            return Err(too_long(limit));
        }
        if end {
            let mut pieces = self.finish(observer)?;
            *out = pieces.next_chunk();
            self.rest = pieces;
        }
        Ok(())
    }

    /// All of it in one place, where that is needed after all.
    pub(super) fn join(&mut self, first: &mut Bytes) -> Bytes {
        if !self.rest.is_empty() {
            let rest = self.take_rest().into_bytes();
            *first = [&**first, &*rest].concat().into();
        }
        first.clone()
    }

    pub(super) fn take_rest(&mut self) -> ChunkedBytes {
        std::mem::take(&mut self.rest)
    }

    pub(super) fn take_signatures(&mut self) -> Option<SignedParts> {
        self.proofs.take()
    }

    pub(super) fn take_losses(&mut self) -> Losses {
        std::mem::take(&mut self.losses)
    }

    fn finish(&mut self, observer: &mut ResponseObserver) -> Result<ChunkedBytes, ApiError> {
        let body = self.gathered.take();
        match &self.reading {
            Reading::Counted { from, to } => {
                let answer = count::answer(*from, *to, &body)?;
                Ok(ChunkedBytes::from(match from == to {
                    true => body,
                    false => answer.into(),
                }))
            }
            Reading::Same(format, name) => {
                let observation = format.codec().observe_response(&body, observer)?;
                if observer.usage.unwrap_or_default().is_blank() {
                    observer.uncounted = meter::heard_in(format.codec(), &body);
                }
                Ok(match observation.model {
                    Some(range) if body[range.clone()] != **name => {
                        let with = name.clone();
                        splice(&body, &[Edit { range, with }])
                    }
                    _ => body.into(),
                })
            }
            Reading::Translated { from, to, asked } => {
                let mut losses = Losses::default();
                let mut response = from.codec().decode_response(&body, &mut losses)?;
                undo::whole(&mut response, asked);
                observer.usage = response.usage;
                observer.images = meter::pictures(&response);
                to.codec().check_response(&response)?;
                if observer.usage.unwrap_or_default().is_blank() {
                    observer.uncounted = meter::heard(&response);
                }
                (observer.has_content, observer.ended) = (true, true);
                if !to.codec().clients_return_signatures() {
                    self.proofs = proofs::of_reply(&response);
                }
                let translated = to.codec().encode_response(&response, asked, &mut losses);
                self.losses = losses;
                Ok(Bytes::from(translated).into())
            }
        }
    }
}
