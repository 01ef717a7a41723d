//! Paths of request fields, for errors and losses: `contents[1].parts[0]`.

use super::Native;
use crate::formats::FieldPaths;
use crate::model::{FieldLocation, Format, PartField};

/// Packs the position of a function declaration into one number: declarations stand in lists inside
/// of a list, so the index of the tool goes into the upper 16 bits.
pub(super) const fn tool_index(tool: u32, declaration: u32) -> u32 {
    tool << 16 | declaration & 0xffff
}

const fn split_tool_index(index: u32) -> (u32, u32) {
    (index >> 16, index & 0xffff)
}

impl FieldPaths for Native {
    fn path_of(&self, location: &FieldLocation) -> String {
        let content = |turn: Option<u32>| match turn {
            Some(turn) => format!("contents[{turn}]"),
            None => "systemInstruction".to_owned(),
        };
        match location {
            FieldLocation::Path(path) => path.clone().into_owned(),
            FieldLocation::Turns => "contents".to_owned(),
            FieldLocation::Setting(setting) => Format::Native.setting(*setting).path().to_owned(),
            FieldLocation::Turn { turn } => content(*turn),
            FieldLocation::Part { turn, part: None } => content(*turn),
            FieldLocation::Part {
                turn,
                part: Some(part),
            } => format!("{}.parts[{part}]", content(*turn)),
            FieldLocation::InToolResult { turn, part, inner } => {
                let part = self.path_of(&FieldLocation::Part {
                    turn: *turn,
                    part: *part,
                });
                match inner {
                    Some(inner) => format!("{part}.functionResponse.parts[{inner}]"),
                    None => part,
                }
            }
            FieldLocation::Field { of, field } => self.path_of(of) + part_field_path(*field),
            // The format has no `strict`, so its clients get the path of the declaration.
            FieldLocation::Tool { tool } | FieldLocation::ToolStrict { tool } => {
                let (tool, declaration) = split_tool_index(*tool);
                format!("tools[{tool}].functionDeclarations[{declaration}]")
            }
        }
    }
}

const fn part_field_path(field: PartField) -> &'static str {
    match field {
        PartField::FileName => ".inlineData.displayName",
        PartField::UrlName => ".fileData.displayName",
        PartField::Failure => ".functionResponse.response.error",
        PartField::CallSignature => ".thoughtSignature",
        // The format has no detail of a single image.
        PartField::Detail => "",
    }
}
