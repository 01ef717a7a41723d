//! `into_owned` of the model's types: events that outlive the bytes they were decoded from.

use super::text::own;
use super::{Block, Citation, Delta, Finish, Logprob, Media, Signature, Source};

impl Block<'_> {
    pub fn into_owned(self) -> Block<'static> {
        match self {
            Block::Text => Block::Text,
            Block::Refusal => Block::Refusal,
            Block::Reasoning => Block::Reasoning,
            Block::Call { id, name, kind } => Block::Call {
                id: id.map(own),
                name: own(name),
                kind,
            },
            Block::Media(media) => Block::Media(media.into_owned()),
        }
    }
}

impl Delta<'_> {
    pub fn into_owned(self) -> Delta<'static> {
        match self {
            Delta::Text(text) => Delta::Text(own(text)),
            Delta::Arguments(text) => Delta::Arguments(own(text)),
            Delta::Signature(signature) => Delta::Signature(signature.into_owned()),
            Delta::Citation(citation) => Delta::Citation(citation.into_owned()),
            Delta::Logprob(logprob) => Delta::Logprob(logprob.into_owned()),
        }
    }
}

impl Media<'_> {
    pub fn into_owned(self) -> Media<'static> {
        Media {
            mime: own(self.mime),
            source: match self.source {
                Source::Base64(text) => Source::Base64(own(text)),
                Source::Url(text) => Source::Url(own(text)),
                Source::File(text) => Source::File(own(text)),
                Source::Plain(text) => Source::Plain(own(text)),
            },
            name: self.name.map(own),
            detail: self.detail,
        }
    }
}

impl Signature<'_> {
    pub fn into_owned(self) -> Signature<'static> {
        Signature {
            issuer: self.issuer,
            data: own(self.data),
        }
    }
}

impl Citation<'_> {
    pub fn into_owned(self) -> Citation<'static> {
        Citation {
            url: own(self.url),
            title: self.title.map(own),
            start: self.start,
            end: self.end,
        }
    }
}

impl Logprob<'_> {
    pub fn into_owned(self) -> Logprob<'static> {
        Logprob {
            token: own(self.token),
            logprob: self.logprob,
            top: self.top.into_iter().map(|(t, p)| (own(t), p)).collect(),
        }
    }
}

impl Finish<'_> {
    pub fn into_owned(self) -> Finish<'static> {
        match self {
            Finish::StopSequence(text) => Finish::StopSequence(text.map(own)),
            Finish::Filtered(text) => Finish::Filtered(text.map(own)),
            Finish::Stop => Finish::Stop,
            Finish::Length => Finish::Length,
            Finish::ContextFull => Finish::ContextFull,
            Finish::Tools => Finish::Tools,
            Finish::Refused => Finish::Refused,
            Finish::Paused => Finish::Paused,
            Finish::MalformedCall => Finish::MalformedCall,
            Finish::Other => Finish::Other,
        }
    }
}
