//! Recognises requests whose input is all in the body, and all text.

use crate::json::{KnownFields, NO_FIELDS};

/// The fields of conversations in text with tools of the client. None of them refers to other input, or holds media.
pub(super) const TEXT_INPUT: KnownFields = KnownFields {
    top: &[
        "contents",
        "model",
        "generationConfig",
        "systemInstruction",
        "tools",
        "toolConfig",
        "safetySettings",
        "labels",
    ],
    nested: &[
        "role",
        "parts",
        "text",
        "maxOutputTokens",
        "temperature",
        "topP",
        "topK",
        "candidateCount",
        "stopSequences",
        "seed",
        "presencePenalty",
        "frequencyPenalty",
        "responseMimeType",
        "responseLogprobs",
        "logprobs",
        "thinkingConfig",
        "includeThoughts",
        "thinkingBudget",
        "thinkingLevel",
        "thought",
        "thoughtSignature",
        "functionCall",
        "functionResponse",
        "id",
        "name",
        "functionDeclarations",
        "description",
        "functionCallingConfig",
        "mode",
        "allowedFunctionNames",
        "category",
        "threshold",
    ],
    opaque: &[
        "args",
        "response",
        "parameters",
        "parametersJsonSchema",
        "responseSchema",
        "responseJsonSchema",
        "labels",
    ],
    // The format has this field in schemas only.
    types: &[],
    has_snake_case: true,
    ..NO_FIELDS
};
