//! Field paths: where in a request of this format a value stands.

use super::Responses;
use crate::formats::FieldPaths;
use crate::model::{FieldLocation, Format, PartField};

impl FieldPaths for Responses {
    fn path_of(&self, location: &FieldLocation) -> String {
        match *location {
            FieldLocation::Path(ref path) => path.to_string(),
            FieldLocation::Turns => "input".to_owned(),
            FieldLocation::Setting(setting) => Format::Responses.setting(setting).path().to_owned(),
            FieldLocation::Part {
                turn: Some(turn),
                part: Some(part),
            } => format!("input[{turn}].content[{part}]"),
            FieldLocation::Turn { turn: Some(turn) }
            | FieldLocation::Part {
                turn: Some(turn), ..
            } => format!("input[{turn}]"),
            FieldLocation::Turn { turn: None } | FieldLocation::Part { turn: None, .. } => {
                "instructions".to_owned()
            }
            FieldLocation::InToolResult {
                turn: Some(turn),
                inner: Some(inner),
                ..
            } => format!("input[{turn}].output[{inner}]"),
            FieldLocation::InToolResult { turn, .. } => self.path_of(&FieldLocation::Turn { turn }),
            FieldLocation::Field { ref of, field } => self.path_of(of) + field_suffix(field),
            FieldLocation::Tool { tool } => format!("tools[{tool}]"),
            FieldLocation::ToolStrict { tool } => format!("tools[{tool}].strict"),
        }
    }
}

const fn field_suffix(field: PartField) -> &'static str {
    match field {
        PartField::Detail => ".detail",
        PartField::FileName | PartField::UrlName => ".filename",
        // Requests of this format have no such fields.
        PartField::Failure | PartField::CallSignature => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Setting;

    #[test]
    fn paths_are_those_of_the_format() {
        let part = |turn, part| Responses.path_of(&FieldLocation::Part { turn, part });
        assert_eq!(part(Some(3), Some(1)), "input[3].content[1]");
        assert_eq!(part(Some(3), None), "input[3]");
        assert_eq!(part(None, None), "instructions");
        assert_eq!(
            Responses.path_of(&FieldLocation::Turn { turn: Some(2) }),
            "input[2]"
        );
        assert_eq!(
            Responses.path_of(&FieldLocation::Tool { tool: 1 }),
            "tools[1]"
        );
        let strict = FieldLocation::ToolStrict { tool: 1 };
        assert_eq!(Responses.path_of(&strict), "tools[1].strict");
        assert_eq!(
            Responses.path_of(&FieldLocation::Path("store".into())),
            "store"
        );
        let setting = FieldLocation::Setting(Setting::OutputFormat);
        assert_eq!(Responses.path_of(&setting), "text.format");
    }
}
