//! Where the user of a web search is, in the words that all formats with such a field share.

use serde::Serialize;

use crate::json::Fields;
use crate::model::{ApiError, Losses, Search};

/// The `user_location` of a web search, of which the formats know one type.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum UserLocation<'a> {
    Approximate(SearchLocation<'a>),
}

/// The fields of a location.
#[serde_with::skip_serializing_none]
#[derive(Serialize)]
pub(super) struct SearchLocation<'a> {
    city: Option<&'a str>,
    region: Option<&'a str>,
    country: Option<&'a str>,
    timezone: Option<&'a str>,
}

impl<'a> SearchLocation<'a> {
    /// Encodes the location of a search, where any of it is known.
    pub(super) fn of(search: &'a Search<'_>) -> Option<SearchLocation<'a>> {
        let fields = [
            &search.city,
            &search.region,
            &search.country,
            &search.timezone,
        ];
        let [city, region, country, timezone] = fields.map(|field| field.as_deref());
        let is_known = fields.into_iter().any(Option::is_some);
        is_known.then_some(SearchLocation {
            city,
            region,
            country,
            timezone,
        })
    }
}

/// Decodes the fields of a location.
pub(super) fn decode_search_location<'a>(
    mut fields: Fields<'a, '_>,
    search: &mut Search<'a>,
    losses: &mut Losses,
) -> Result<(), ApiError> {
    search.city = fields.text("city")?;
    search.region = fields.text("region")?;
    search.country = fields.text("country")?;
    search.timezone = fields.text("timezone")?;
    fields.finish(losses);
    Ok(())
}
