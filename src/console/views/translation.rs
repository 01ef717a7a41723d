//! Translations, as the explorer shows them.

use serde::Serialize;

use super::MarkedText;

/// What becomes of a body in another format.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TranslationView {
    /// The format of the input.
    pub from: &'static str,
    /// The format of the output.
    pub to: &'static str,
    /// Both formats are the same: nothing is translated.
    pub passes_through: bool,
    /// JSON, or server-sent events. Of what is refused: the error that the client gets.
    pub output: String,
    /// Null: it is translated.
    pub refused: Option<TranslationRefusal>,
    /// What the translation reports.
    pub losses: Vec<LossView>,
    #[serde(skip)]
    #[cfg_attr(test, schema(ignore))]
    pub input_text: MarkedText,
    #[serde(skip)]
    #[cfg_attr(test, schema(ignore))]
    pub output_text: MarkedText,
}

impl TranslationView {
    /// The losses of a kind.
    pub fn of_action(&self, action: &str) -> Vec<&LossView> {
        let losses = self.losses.iter();
        losses.filter(|loss| loss.action == action).collect()
    }
}

/// Why a body is refused.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct TranslationRefusal {
    /// That the client gets.
    pub status: u16,
    pub message: String,
    /// The field at fault, in the client's format.
    pub path: Option<String>,
}

/// A difference that the translation reports.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct LossView {
    /// `dropped`, `adjusted` or `added`.
    pub action: &'static str,
    /// In the format of the input.
    pub path: String,
    /// The input has something at the path.
    pub is_in_input: bool,
    /// Where the output has it, if that is known.
    pub output_path: Option<String>,
}
