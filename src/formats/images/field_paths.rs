//! The paths of fields in a request, as they are named in errors and losses.

use super::Images;
use crate::formats::FieldPaths;
use crate::model::{FieldLocation, Format};

impl FieldPaths for Images {
    fn path_of(&self, location: &FieldLocation) -> String {
        match location {
            FieldLocation::Path(path) => path.clone().into_owned(),
            FieldLocation::Part {
                part: Some(part @ 1..),
                ..
            } => format!("image[{}]", part - 1),
            FieldLocation::Part { .. }
            | FieldLocation::Turn { .. }
            | FieldLocation::InToolResult { .. } => "prompt".to_owned(),
            FieldLocation::Field { of, .. } => self.path_of(of),
            FieldLocation::Tool { .. } | FieldLocation::ToolStrict { .. } => "tools".to_owned(),
            FieldLocation::Turns => "prompt".to_owned(),
            FieldLocation::Setting(setting) => Format::Images.setting(*setting).path().to_owned(),
        }
    }
}
