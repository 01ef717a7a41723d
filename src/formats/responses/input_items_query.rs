//! The query of a request for the input items of a stored response.

use url::form_urlencoded;

use crate::model::ApiError;

/// The query of a request for input items.
pub(super) struct InputItemsQuery {
    pub(super) limit: usize,
    pub(super) newest_first: bool,
    pub(super) after: Option<String>,
}

/// The largest page.
const MAX_LIMIT: usize = 100;

impl InputItemsQuery {
    pub(super) fn parse(query: Option<&str>) -> Result<InputItemsQuery, ApiError> {
        let mut parsed = InputItemsQuery {
            limit: 20,
            newest_first: true,
            after: None,
        };
        for (name, value) in form_urlencoded::parse(query.unwrap_or("").as_bytes()) {
            match &*name {
                "limit" => {
                    let limit = value.parse().ok();
                    let limit = limit.filter(|limit| (1..=MAX_LIMIT).contains(limit));
                    parsed.limit = limit.ok_or_else(|| {
                        let message = format!("limit: expected a number from 1 to {MAX_LIMIT}");
                        ApiError::invalid(message).at("limit")
                    })?;
                }
                "order" => {
                    parsed.newest_first = match &*value {
                        "desc" => true,
                        "asc" => false,
                        _ => return Err(ApiError::invalid("order: use asc or desc").at("order")),
                    }
                }
                "after" => parsed.after = Some(value.into_owned()),
                _ => {}
            }
        }
        Ok(parsed)
    }
}
