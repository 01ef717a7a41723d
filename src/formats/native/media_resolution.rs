//! `generationConfig.mediaResolution`: how closely the model looks at images.

use crate::model::{Detail, FieldLocation, Losses, Part, PartField, PartKind, Turn};

/// Encodes the detail of the images in a conversation. The format has one resolution for the whole
/// request, so the detail of an image counts only where all images agree.
pub(super) fn encode_media_resolution(
    turns: &[Turn<'_>],
    losses: &mut Losses,
) -> Option<&'static str> {
    let mut images = Vec::new();
    for turn in turns {
        for part in &turn.parts {
            images.extend(images_of(turn, part));
        }
    }
    let (first, _) = images.first()?;
    let agreed = images.iter().all(|(detail, _)| detail == first);
    let resolution = match first {
        Some(Detail::Low) if agreed => Some("MEDIA_RESOLUTION_LOW"),
        Some(Detail::High) if agreed => Some("MEDIA_RESOLUTION_HIGH"),
        _ => None,
    };
    for (detail, location) in images {
        match detail {
            None | Some(Detail::Auto) => {}
            Some(_) if resolution.is_some() => {
                losses.approximated(location.field(PartField::Detail))
            }
            Some(_) => losses.dropped(location.field(PartField::Detail)),
        }
    }
    resolution
}

/// Lists the images of a part, which may be a tool result, with their detail and location.
fn images_of<'a>(
    turn: &Turn<'_>,
    part: &'a Part<'_>,
) -> impl Iterator<Item = (Option<Detail>, FieldLocation)> + use<'a> {
    let location = FieldLocation::Part {
        turn: turn.at,
        part: part.at,
    };
    let (parts, in_result) = match &part.kind {
        PartKind::Result(result) => (&result.parts[..], true),
        _ => (std::slice::from_ref(part), false),
    };
    parts.iter().filter_map(move |part| match &part.kind {
        PartKind::Media(media) if media.mime.is_empty() || media.mime.starts_with("image/") => {
            let location = match in_result {
                true => location.in_tool_result(part.at),
                false => location.clone(),
            };
            Some((media.detail, location))
        }
        _ => None,
    })
}
