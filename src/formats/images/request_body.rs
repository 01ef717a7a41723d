//! The body of a request, which is JSON or a multipart form.

use super::form;
use super::input_image::{InputImage, InputImageSource, decode_json_image, image_source};
use crate::formats::multipart::{self, MultipartField};
use crate::json::Fields;
use crate::model::{ApiError, FieldLocation, Json, Losses, Text, truncated};

/// A request body whose fields are taken one by one, in either encoding.
pub(super) enum ImageRequestBody<'a> {
    Json(Fields<'a, 'static>),
    Multipart(Vec<MultipartField<'a>>),
}

impl<'a> ImageRequestBody<'a> {
    pub(super) fn decode(body: &'a [u8]) -> Result<ImageRequestBody<'a>, ApiError> {
        Ok(match multipart::is_multipart(body) {
            true => ImageRequestBody::Multipart(form::decode(body)?),
            false => ImageRequestBody::Json(Fields::of_body(body)?),
        })
    }

    pub(super) fn skip(&mut self, key: &str) {
        match self {
            ImageRequestBody::Json(fields) => drop(fields.take(key)),
            ImageRequestBody::Multipart(fields) => fields.retain(|field| field.name != key),
        }
    }

    fn take(fields: &mut Vec<MultipartField<'a>>, key: &str) -> Option<&'a [u8]> {
        let at = fields.iter().position(|field| field.name == key)?;
        Some(fields.remove(at).value)
    }

    pub(super) fn text(&mut self, key: &str) -> Result<Option<Text<'a>>, ApiError> {
        match self {
            ImageRequestBody::Json(fields) => fields.text(key),
            ImageRequestBody::Multipart(fields) => {
                let value = Self::take(fields, key).map(std::str::from_utf8);
                let wrong = |_| ApiError::invalid(format!("{key}: expected text")).at(key);
                value
                    .transpose()
                    .map_err(wrong)
                    .map(|text| text.map(Text::from))
            }
        }
    }

    pub(super) fn integer(&mut self, key: &str) -> Result<Option<i64>, ApiError> {
        match self {
            ImageRequestBody::Json(fields) => fields.i64(key),
            ImageRequestBody::Multipart(_) => {
                let wrong = |_| ApiError::invalid(format!("{key}: expected an integer")).at(key);
                let text = self.text(key)?;
                text.map(|text| text.trim().parse().map_err(wrong))
                    .transpose()
            }
        }
    }

    /// Takes all images of a field; in JSON it may hold one or an array.
    pub(super) fn images(&mut self, key: &str) -> Result<Vec<InputImage<'a>>, ApiError> {
        let mut images = Vec::new();
        match self {
            ImageRequestBody::Multipart(fields) => {
                while let Some(bytes) = Self::take(fields, key) {
                    // Some clients send a URL in a form field, as they would in JSON.
                    let text = std::str::from_utf8(bytes).ok();
                    let url = text.and_then(|text| image_source(text.into()));
                    let source = url.map_or(InputImageSource::File(bytes), InputImageSource::Json);
                    images.push(InputImage::new(source, key)?);
                }
            }
            ImageRequestBody::Json(fields) => match fields.node(key) {
                None => {}
                Some(node) if matches!(node.value, Json::Array(_)) => {
                    node.each(|_, node| {
                        images.push(decode_json_image(node)?);
                        Ok(())
                    })?;
                }
                Some(node) => images.push(decode_json_image(node)?),
            },
        }
        Ok(images)
    }

    /// Reports the fields that nobody has taken.
    pub(super) fn finish(self, losses: &mut Losses) {
        match self {
            ImageRequestBody::Json(fields) => fields.finish(losses),
            ImageRequestBody::Multipart(fields) => {
                for field in fields {
                    let name = truncated(field.name).into_owned();
                    losses.dropped(FieldLocation::Path(name.into()));
                }
            }
        }
    }
}
