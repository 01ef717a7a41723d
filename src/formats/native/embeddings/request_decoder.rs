//! Requests for embeddings that are translated.

use super::{AUTO_TRUNCATE, CONFIG, CONTENT, OUTPUT_DIMENSIONALITY, TASK_TYPE, TITLE};
use crate::formats::native::field_names::{self, FieldNames};
use crate::json::{Fields, Node, Path, UNSPECIFIED};
use crate::model::{
    ApiError, EmbeddingRequest, FieldLocation, InputHint, InputHints, Losses, Text,
};

/// Decodes requests that all become one.
pub(super) struct RequestDecoder<'a, 'l> {
    pub(super) request: EmbeddingRequest<'a>,
    pub(super) losses: &'l mut Losses,
}

impl<'a> RequestDecoder<'a, '_> {
    /// Adds a request, which must ask for vectors of the same length as those before it.
    pub(super) fn add(&mut self, mut fields: Fields<'a, '_>) -> Result<(), ApiError> {
        let _ = fields.take("model");
        let content = field_names::take(&mut fields, CONTENT);
        let content = content.map(|node| self.decode_content(node)).transpose()?;
        let content = fields.need("content", content)?;
        let is_first = self.request.inputs.is_empty();
        self.request.inputs.push(content);
        let mut hints = InputHints::default();
        let own = decode_settings(&mut fields, &mut hints)?;
        let config = field_names::take(&mut fields, CONFIG);
        let config = config.map(|node| {
            node.fields(|mut fields| {
                let dimensions = decode_settings(&mut fields, &mut hints)?;
                fields.finish(self.losses);
                Ok(dimensions)
            })
        });
        let dimensions = own.or(config.transpose()?.flatten());
        self.request.hints.push(hints);
        if is_first {
            self.request.dimensions = dimensions;
        } else if dimensions != self.request.dimensions {
            let path = Path::Key(&fields.path, OUTPUT_DIMENSIONALITY[0]);
            return Err(path.wrong("the same for all requests: the upstream of this model has one"));
        }
        fields.finish(self.losses);
        Ok(())
    }

    /// The texts of a content make one input.
    fn decode_content(&mut self, content: Node<'a, '_>) -> Result<Text<'a>, ApiError> {
        content.fields(|mut fields| {
            let _ = fields.take("role");
            let mut texts: Vec<Text<'a>> = Vec::new();
            let mut path = None;
            if let Some(parts) = fields.node("parts") {
                path = Some(parts.path.to_string());
                parts.each(|_, part| {
                    let place = part.path.to_string();
                    part.fields(|mut fields| {
                        let text = fields.text("text")?;
                        let advice = || {
                            let message = format!(
                                "{place}: the upstream of this model makes embeddings of text only"
                            );
                            ApiError::invalid(message).at(place.clone())
                        };
                        texts.push(text.ok_or_else(advice)?);
                        fields.finish(self.losses);
                        Ok(())
                    })
                })?;
            }
            if texts.len() > 1 {
                let path = path.unwrap_or_default();
                self.losses.approximated(FieldLocation::Path(path.into()));
                return Ok(texts.concat().into());
            }
            let text = texts.pop();
            let text = fields.need("parts", text)?;
            fields.finish(self.losses);
            Ok(text)
        })
    }
}

/// Decodes the length of the vector, and adds what else is said of an input.
fn decode_settings<'a>(
    fields: &mut Fields<'a, '_>,
    hints: &mut InputHints<'a>,
) -> Result<Option<u64>, ApiError> {
    let dimensions = field_names::take(fields, OUTPUT_DIMENSIONALITY);
    let dimensions = dimensions.map(Node::u64).transpose()?;
    let task_type = hint(fields, TASK_TYPE, Node::text)?;
    // The word for none.
    let task_type =
        task_type.filter(|hint| !hint.value.is_empty() && !hint.value.ends_with(UNSPECIFIED));
    hints.task_type = hints.task_type.take().or(task_type);
    hints.title = hints.title.take().or(hint(fields, TITLE, Node::text)?);
    let auto_truncate = hint(fields, AUTO_TRUNCATE, Node::bool)?;
    hints.auto_truncate = hints.auto_truncate.take().or(auto_truncate);
    // Zero is the same as absent in this format.
    Ok(dimensions.filter(|dimensions| *dimensions > 0))
}

fn hint<'a, 's, T>(
    fields: &'s mut Fields<'a, '_>,
    names: FieldNames,
    decode: impl FnOnce(Node<'a, 's>) -> Result<T, ApiError>,
) -> Result<Option<InputHint<T>>, ApiError> {
    let Some(node) = field_names::take(fields, names) else {
        return Ok(None);
    };
    let path = node.path.to_string();
    let value = decode(node)?;
    Ok(Some(InputHint { value, path }))
}
