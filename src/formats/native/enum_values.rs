//! The enum values of request fields, as the API reference lists them.

/// `contents[].role`
pub(super) const ROLES: &[&str] = &["user", "model", "function", "tool"];
/// Those of them by which some clients call the user in contents of nothing but function responses.
pub(super) const RESULT_ROLES: &[&str] = &["function", "tool"];
/// `toolConfig.functionCallingConfig.mode`
pub(super) const FUNCTION_CALLING_MODES: &[&str] = &["AUTO", "ANY", "NONE", "VALIDATED"];
/// `generationConfig.thinkingConfig.thinkingLevel`
pub(super) const THINKING_LEVELS: &[&str] = &["MINIMAL", "LOW", "MEDIUM", "HIGH"];
/// `generationConfig.responseModalities`
pub(super) const MODALITIES: &[&str] = &["TEXT", "IMAGE", "AUDIO"];

pub(super) const TEXT_PLAIN: &str = "text/plain";
pub(super) const APPLICATION_JSON: &str = "application/json";
pub(super) const TEXT_ENUM: &str = "text/x.enum";
/// `generationConfig.responseMimeType`
pub(super) const RESPONSE_MIME_TYPES: &[&str] = &[TEXT_PLAIN, APPLICATION_JSON, TEXT_ENUM];

/// `generationConfig.imageConfig.aspectRatio`
pub(super) const ASPECT_RATIOS: &[&str] = &[
    "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9", "1:4", "4:1", "1:8",
    "8:1",
];
/// `generationConfig.imageConfig.imageSize`, the default first
pub(super) const IMAGE_SIZES: &[&str] = &["1K", "2K", "4K"];
/// `generationConfig.mediaResolution`
pub(super) const MEDIA_RESOLUTIONS: &[&str] = &[
    "MEDIA_RESOLUTION_LOW",
    "MEDIA_RESOLUTION_MEDIUM",
    "MEDIA_RESOLUTION_HIGH",
];

/// `safetySettings[].category`
pub(super) const HARM_CATEGORIES: &[&str] = &[
    "HARM_CATEGORY_HARASSMENT",
    "HARM_CATEGORY_HATE_SPEECH",
    "HARM_CATEGORY_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_DANGEROUS_CONTENT",
    "HARM_CATEGORY_CIVIC_INTEGRITY",
    "HARM_CATEGORY_JAILBREAK",
    "HARM_CATEGORY_IMAGE_HARASSMENT",
    "HARM_CATEGORY_IMAGE_HATE",
    "HARM_CATEGORY_IMAGE_SEXUALLY_EXPLICIT",
    "HARM_CATEGORY_IMAGE_DANGEROUS_CONTENT",
];
/// `safetySettings[].threshold`
pub(super) const HARM_THRESHOLDS: &[&str] = &[
    "BLOCK_NONE",
    "BLOCK_ONLY_HIGH",
    "BLOCK_MEDIUM_AND_ABOVE",
    "BLOCK_LOW_AND_ABOVE",
    "OFF",
];

/// The most `stopSequences` that a request may have.
pub(super) const MAX_STOP_SEQUENCES: usize = 5;
