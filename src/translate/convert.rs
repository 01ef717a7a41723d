//! From one format to another: requests there, replies, errors and streams back.

use bytes::Bytes;

use crate::formats::{Asked, Head, StreamDecoder, StreamEncoder, Target};
use crate::model::{Fault, Format, Losses};
use crate::sse::{Frames, SseWriter};

/// A client's body as the body for an upstream of another format.
pub fn request(
    from: Format,
    to: Format,
    head: &Head<'_>,
    body: &[u8],
    target: &Target<'_>,
    losses: &mut Losses,
) -> Result<Vec<u8>, Fault> {
    let request = from.codec().decode_request(head, body, losses)?;
    to.codec()
        .encode_request(&request, target, losses)
        .map_err(|fault| Fault {
            param: fault
                .param
                .or_else(|| Some(from.codec().path_of(fault.place.as_ref()?))),
            ..fault
        })
}

/// An upstream's whole reply as one for a client of another format.
pub fn response(
    from: Format,
    to: Format,
    body: &[u8],
    asked: &Asked,
    losses: &mut Losses,
) -> Result<Vec<u8>, Fault> {
    let response = from.codec().decode_response(body, losses)?;
    Ok(to.codec().encode_response(&response, asked, losses))
}

/// An upstream's error as the status and body a client of another format expects.
pub fn error(
    from: Format,
    to: Format,
    status: u16,
    body: &[u8],
    request_id: &str,
) -> (u16, Vec<u8>) {
    let fault = from.codec().decode_error(status, body);
    to.codec().encode_error(&fault, request_id)
}

/// An upstream's stream as one for a client of another format, piece by piece and without I/O.
pub struct Relay {
    frames: Frames,
    decoder: Box<dyn StreamDecoder>,
    encoder: Box<dyn StreamEncoder>,
    out: SseWriter,
    /// After a fault nothing may follow.
    failed: bool,
}

impl Relay {
    pub fn new(from: Format, to: Format, asked: &Asked) -> Relay {
        Relay {
            frames: Frames::default(),
            decoder: from.codec().stream_decoder(),
            encoder: to.codec().stream_encoder(asked),
            out: SseWriter::default(),
            failed: false,
        }
    }

    /// What a piece of the upstream's stream becomes, complete events only.
    pub fn push(&mut self, chunk: &[u8]) -> Bytes {
        let Relay {
            frames,
            decoder,
            encoder,
            out,
            failed,
        } = self;
        frames.push(chunk, |frame| {
            let Some(data) = frame.data.filter(|_| !*failed) else {
                return;
            };
            let read = decoder.event(&data, &mut |event| encoder.event(event, out));
            if let Err(fault) = read {
                encoder.fault(&fault, out);
                *failed = true;
            }
        });
        self.out.take()
    }

    /// The upstream has nothing more: the proper end, or the error that stands for it.
    pub fn finish(&mut self) -> Bytes {
        let rest = self.push(b"\n\n");
        if !self.failed {
            let Relay {
                decoder,
                encoder,
                out,
                ..
            } = self;
            if let Err(fault) = decoder.close(&mut |event| encoder.event(event, out)) {
                self.encoder.fault(&fault, &mut self.out);
            }
        }
        let end = self.out.take();
        [rest, end].concat().into()
    }
}
