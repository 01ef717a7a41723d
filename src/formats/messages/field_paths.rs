//! The paths of fields in a request, as they are named in errors and losses.

use super::Messages;
use crate::formats::FieldPaths;
use crate::model::{FieldLocation, Format, PartField};

impl FieldPaths for Messages {
    fn path_of(&self, location: &FieldLocation) -> String {
        match location {
            FieldLocation::Path(path) => path.to_string(),
            FieldLocation::Turns => "messages".to_owned(),
            FieldLocation::Setting(setting) => Format::Messages.setting(*setting).path().to_owned(),
            FieldLocation::Turn { turn } => turn_path(*turn),
            FieldLocation::Part { turn, part: None } => match turn {
                Some(_) => format!("{}.content", turn_path(*turn)),
                None => turn_path(None),
            },
            FieldLocation::Part {
                turn: Some(turn),
                part: Some(part),
            } => format!("messages[{turn}].content[{part}]"),
            FieldLocation::Part {
                turn: None,
                part: Some(part),
            } => format!("system[{part}]"),
            FieldLocation::InToolResult { turn, part, inner } => {
                let result = self.path_of(&FieldLocation::Part {
                    turn: *turn,
                    part: *part,
                });
                inner.map_or_else(
                    || result.clone(),
                    |inner| format!("{result}.content[{inner}]"),
                )
            }
            FieldLocation::Field { of, field } => self.path_of(of) + field_suffix(*field),
            FieldLocation::Tool { tool } => format!("tools[{tool}]"),
            FieldLocation::ToolStrict { tool } => format!("tools[{tool}].strict"),
        }
    }
}

const fn field_suffix(field: PartField) -> &'static str {
    match field {
        PartField::FileName | PartField::UrlName => ".title",
        PartField::Failure => ".is_error",
        // The format does not have these.
        PartField::Detail | PartField::CallSignature => "",
    }
}

fn turn_path(turn: Option<u32>) -> String {
    turn.map_or_else(|| "system".to_owned(), |turn| format!("messages[{turn}]"))
}
