//! Anything that goes wrong and that a client may be told.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::Place;

/// Rendered by the codec of the client's format, nowhere else. On the heap: nearly every function
/// may answer with one and hardly any does, but each would hold the room and the moves for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault(Box<Trouble>);

/// What there is to say of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trouble {
    pub kind: FaultKind,
    /// The status a client of any format would see; a format may have its own (529).
    pub status: u16,
    pub message: String,
    /// The field at fault, in the client's own words.
    pub param: Option<String>,
    /// The same, until the client's codec has put it into words.
    pub place: Option<Place>,
    /// A more precise code than the kind's own, where an upstream gave one.
    pub code: Option<String>,
    pub retry_after: Option<Duration>,
    /// The methods that a path has.
    pub allowed: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FaultKind {
    Invalid,
    ContextTooLong,
    Unauthenticated,
    Forbidden,
    NotFound,
    MethodNotAllowed,
    Conflict,
    TooLarge,
    RateLimited,
    OverQuota,
    Internal,
    Unsupported,
    BadGateway,
    Overloaded,
    Timeout,
}

impl FaultKind {
    /// The word for it in logs.
    pub const fn name(self) -> &'static str {
        match self {
            FaultKind::Invalid => "invalid",
            FaultKind::ContextTooLong => "context_too_long",
            FaultKind::Unauthenticated => "unauthenticated",
            FaultKind::Forbidden => "forbidden",
            FaultKind::NotFound => "not_found",
            FaultKind::MethodNotAllowed => "method_not_allowed",
            FaultKind::Conflict => "conflict",
            FaultKind::TooLarge => "too_large",
            FaultKind::RateLimited => "rate_limited",
            FaultKind::OverQuota => "over_quota",
            FaultKind::Internal => "internal",
            FaultKind::Unsupported => "unsupported",
            FaultKind::BadGateway => "bad_gateway",
            FaultKind::Overloaded => "overloaded",
            FaultKind::Timeout => "timeout",
        }
    }

    pub const fn status(self) -> u16 {
        match self {
            FaultKind::Invalid | FaultKind::ContextTooLong => 400,
            FaultKind::Unauthenticated => 401,
            FaultKind::Forbidden => 403,
            FaultKind::NotFound => 404,
            FaultKind::MethodNotAllowed => 405,
            FaultKind::Conflict => 409,
            FaultKind::TooLarge => 413,
            FaultKind::RateLimited | FaultKind::OverQuota => 429,
            FaultKind::Internal => 500,
            FaultKind::Unsupported => 501,
            FaultKind::BadGateway => 502,
            FaultKind::Overloaded => 503,
            FaultKind::Timeout => 504,
        }
    }

    /// Upstreams tell these with statuses that clients of other formats do not know, or do not
    /// take for what they are: 529, 402, and 400 for a wrong key or a model that is not there.
    pub const fn has_one_status(self) -> bool {
        matches!(
            self,
            FaultKind::Overloaded
                | FaultKind::OverQuota
                | FaultKind::Unauthenticated
                | FaultKind::NotFound
        )
    }

    /// The kind a bare HTTP status stands for.
    pub const fn of_status(status: u16) -> FaultKind {
        match status {
            401 => FaultKind::Unauthenticated,
            402 => FaultKind::OverQuota,
            403 => FaultKind::Forbidden,
            404 => FaultKind::NotFound,
            405 => FaultKind::MethodNotAllowed,
            409 => FaultKind::Conflict,
            413 => FaultKind::TooLarge,
            429 => FaultKind::RateLimited,
            501 => FaultKind::Unsupported,
            502 => FaultKind::BadGateway,
            503 | 529 => FaultKind::Overloaded,
            408 | 504 => FaultKind::Timeout,
            400..=499 => FaultKind::Invalid,
            _ => FaultKind::Internal,
        }
    }
}

impl Deref for Fault {
    type Target = Trouble;

    fn deref(&self) -> &Trouble {
        &self.0
    }
}

impl DerefMut for Fault {
    fn deref_mut(&mut self) -> &mut Trouble {
        &mut self.0
    }
}

impl Fault {
    pub fn new(kind: FaultKind, message: impl Into<String>) -> Fault {
        Fault::made(kind, message.into())
    }

    #[cold]
    #[inline(never)]
    fn made(kind: FaultKind, message: String) -> Fault {
        Fault(Box::new(Trouble {
            kind,
            status: kind.status(),
            message,
            param: None,
            place: None,
            code: None,
            retry_after: None,
            allowed: None,
        }))
    }

    pub fn invalid(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::Invalid, message)
    }

    pub fn bad_gateway(message: impl Into<String>) -> Fault {
        Fault::new(FaultKind::BadGateway, message)
    }

    #[must_use]
    pub fn at(mut self, param: impl Into<String>) -> Fault {
        self.param = Some(param.into());
        self
    }

    /// For encoders, which do not know the client's words.
    #[must_use]
    pub fn about(mut self, place: Place) -> Fault {
        self.place = Some(place);
        self
    }
}
