//! What one can play with, and what came of it.

use serde::Serialize;

use super::{Decimal, InspectionView};

/// What one can play with.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PlayOptionsView {
    pub keys: Vec<PlayKeyView>,
    /// The models for conversations; a key may be for some of them only.
    pub models: Vec<String>,
}

#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PlayKeyView {
    pub id: String,
    pub name: String,
}

/// What came of a request, once all of it is there.
#[derive(Debug, Clone, Default, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct PlayOutcomeView {
    pub request_id: String,
    pub status: u16,
    /// Of `/inspections/{id}`, where request 1 is what was captured; null: the inspector is off.
    pub inspection: Option<String>,
    /// Tokens.
    pub input: Option<u64>,
    pub output: Option<u64>,
    pub estimated: bool,
    /// Null: the model has no price, or the inspector is off and the cost is in the list of requests only.
    #[cfg_attr(test, schema(value_type = Option<f64>))]
    pub cost: Option<Decimal>,
    pub took_ms: Option<f64>,
}

impl PlayOutcomeView {
    /// Adds what was captured of the request.
    pub fn add(&mut self, inspection: &InspectionView) {
        self.inspection = Some(inspection.id.clone());
        if let Some(line) = inspection.requests.first() {
            line.request_id.clone_into(&mut self.request_id);
            (self.input, self.output) = (line.input, line.output);
            (self.estimated, self.cost) = (line.estimated, line.cost);
            self.took_ms = line.took_ms;
        }
    }
}

/// One step of an answer.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum PlayEventView {
    /// A part of the answer.
    Text { text: String },
    /// A part of the reasoning before it.
    Reasoning { text: String },
    /// The request or its stream has failed, with the message that a client gets.
    Failed { message: String },
    /// The end.
    Done(PlayOutcomeView),
}
