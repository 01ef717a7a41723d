//! An error that a client may see, encoded in the client's format.

use std::ops::{Deref, DerefMut};
use std::time::Duration;

use super::FieldLocation;

/// An error for the client. Boxed, because nearly every function may return one and hardly any does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiError(Box<ApiErrorDetails>);

/// The details of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiErrorDetails {
    pub kind: ApiErrorKind,
    /// The HTTP status; a format may use another (529).
    pub status: u16,
    pub message: String,
    /// The path of the field at fault, in the client's format.
    pub param: Option<String>,
    /// The location of the field, until the client's codec turns it into `param`.
    pub location: Option<FieldLocation>,
    /// A more precise code than that of the kind, where the upstream sent one.
    pub code: Option<String>,
    pub retry_after: Option<Duration>,
    /// The methods of the path, for 405.
    pub allowed: Option<String>,
    /// The upstream has sent it. Without this, the error of a response is the gateway's own, for what it cannot read.
    pub is_sent: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ApiErrorKind {
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

impl ApiErrorKind {
    /// The name in logs.
    pub const fn name(self) -> &'static str {
        match self {
            ApiErrorKind::Invalid => "invalid",
            ApiErrorKind::ContextTooLong => "context_too_long",
            ApiErrorKind::Unauthenticated => "unauthenticated",
            ApiErrorKind::Forbidden => "forbidden",
            ApiErrorKind::NotFound => "not_found",
            ApiErrorKind::MethodNotAllowed => "method_not_allowed",
            ApiErrorKind::Conflict => "conflict",
            ApiErrorKind::TooLarge => "too_large",
            ApiErrorKind::RateLimited => "rate_limited",
            ApiErrorKind::OverQuota => "over_quota",
            ApiErrorKind::Internal => "internal",
            ApiErrorKind::Unsupported => "unsupported",
            ApiErrorKind::BadGateway => "bad_gateway",
            ApiErrorKind::Overloaded => "overloaded",
            ApiErrorKind::Timeout => "timeout",
        }
    }

    pub const fn status(self) -> u16 {
        match self {
            ApiErrorKind::Invalid | ApiErrorKind::ContextTooLong => 400,
            ApiErrorKind::Unauthenticated => 401,
            ApiErrorKind::Forbidden => 403,
            ApiErrorKind::NotFound => 404,
            ApiErrorKind::MethodNotAllowed => 405,
            ApiErrorKind::Conflict => 409,
            ApiErrorKind::TooLarge => 413,
            ApiErrorKind::RateLimited | ApiErrorKind::OverQuota => 429,
            ApiErrorKind::Internal => 500,
            ApiErrorKind::Unsupported => 501,
            ApiErrorKind::BadGateway => 502,
            ApiErrorKind::Overloaded => 503,
            ApiErrorKind::Timeout => 504,
        }
    }

    /// Tells whether clients get our status instead of the upstream's: upstreams use statuses for these kinds that
    /// clients of other formats do not know or misread (529, 402, or 400 for a wrong key or an unknown model).
    pub const fn has_canonical_status(self) -> bool {
        matches!(
            self,
            ApiErrorKind::Overloaded
                | ApiErrorKind::OverQuota
                | ApiErrorKind::Unauthenticated
                | ApiErrorKind::NotFound
        )
    }

    /// The kind of an HTTP status.
    pub const fn from_status(status: u16) -> ApiErrorKind {
        match status {
            401 => ApiErrorKind::Unauthenticated,
            402 => ApiErrorKind::OverQuota,
            403 => ApiErrorKind::Forbidden,
            404 => ApiErrorKind::NotFound,
            405 => ApiErrorKind::MethodNotAllowed,
            409 => ApiErrorKind::Conflict,
            413 => ApiErrorKind::TooLarge,
            429 => ApiErrorKind::RateLimited,
            501 => ApiErrorKind::Unsupported,
            502 => ApiErrorKind::BadGateway,
            503 | 529 => ApiErrorKind::Overloaded,
            408 | 504 => ApiErrorKind::Timeout,
            400..=499 => ApiErrorKind::Invalid,
            _ => ApiErrorKind::Internal,
        }
    }
}

impl Deref for ApiError {
    type Target = ApiErrorDetails;

    fn deref(&self) -> &ApiErrorDetails {
        &self.0
    }
}

impl DerefMut for ApiError {
    fn deref_mut(&mut self) -> &mut ApiErrorDetails {
        &mut self.0
    }
}

impl ApiError {
    pub fn new(kind: ApiErrorKind, message: impl Into<String>) -> ApiError {
        ApiError::made(kind, message.into())
    }

    #[cold]
    #[inline(never)]
    fn made(kind: ApiErrorKind, message: String) -> ApiError {
        ApiError(Box::new(ApiErrorDetails {
            kind,
            status: kind.status(),
            message,
            param: None,
            location: None,
            code: None,
            retry_after: None,
            allowed: None,
            is_sent: false,
        }))
    }

    /// An error that the upstream has sent.
    pub fn sent(kind: ApiErrorKind, message: impl Into<String>) -> ApiError {
        let mut api_error = ApiError::new(kind, message);
        api_error.is_sent = true;
        api_error
    }

    pub fn invalid(message: impl Into<String>) -> ApiError {
        ApiError::new(ApiErrorKind::Invalid, message)
    }

    pub fn bad_gateway(message: impl Into<String>) -> ApiError {
        ApiError::new(ApiErrorKind::BadGateway, message)
    }

    #[must_use]
    pub fn at(mut self, param: impl Into<String>) -> ApiError {
        self.param = Some(param.into());
        self
    }

    /// Sets the location, for encoders, which do not know the client's format.
    #[must_use]
    pub fn at_location(mut self, location: FieldLocation) -> ApiError {
        self.location = Some(location);
        self
    }
}
