//! Recorded traffic that must be refused, by the feature that it asks for.

use omniglot::model::{ApiError, Format};

/// A refusal that is right.
pub struct Refusal {
    /// The format the request or reply is in.
    pub format: Format,
    /// In the field at error or in the words about it.
    pub says: &'static str,
}

const fn refusal(format: Format, says: &'static str) -> Refusal {
    Refusal { format, says }
}

/// By the client's own decoder.
pub const DECODED: &[Refusal] = &[
    // Some backends take a tool that does not say its type.
    refusal(Format::Chat, "missing required field tools[0].type"),
    refusal(Format::Chat, "file_data: expected a base64 data URL"),
    refusal(Format::Chat, "tools[0].type: expected function or custom"),
    // Tools that run at the vendor.
    refusal(Format::Messages, "has no tool like advisor_"),
    refusal(Format::Messages, "has no tool like tool_search_tool_"),
    refusal(Format::Messages, "has no tool like memory_"),
    refusal(Format::Messages, "has no tool like web_fetch_"),
    refusal(Format::Messages, "mcp_servers"),
    refusal(Format::Messages, "a block of type compaction"),
    refusal(Format::Messages, "a block of type container_upload"),
    refusal(Format::Messages, "cannot read stored files"),
    refusal(Format::Native, "cachedContent"),
    refusal(Format::Native, "fileSearch"),
    refusal(Format::Native, "urlContext"),
    refusal(Format::Native, "expected a public https URL"),
    refusal(Format::Responses, "the tool tool_search"),
    refusal(Format::Responses, "the tool mcp"),
    refusal(Format::Responses, "background"),
    refusal(Format::Responses, "conversation"),
    refusal(Format::Responses, "previous_response_id"),
    refusal(Format::Responses, "items of type additional_tools"),
    // The vendor refused it too.
    refusal(
        Format::Responses,
        "temperature: expected a number from 0 to 2",
    ),
];

/// By the rules of the surface, which has no store of files and knows no projects.
pub const BEYOND_THE_RULES: &[Refusal] = &[
    refusal(Format::Native, "expected a public https URL"),
    refusal(Format::Native, "cachedContent: expected a name"),
];

/// By the encoder of another format.
pub const ENCODED: &[Refusal] = &[
    refusal(Format::Chat, "cannot answer with "),
    refusal(Format::Chat, "does not take audio/"),
    refusal(Format::Chat, "takes no media of audio/"),
    refusal(Format::Chat, "cannot read stored files"),
    refusal(Format::Messages, "it runs no code"),
    refusal(Format::Native, "it runs no code"),
    refusal(Format::Native, "only images can be given as a URL"),
    refusal(Format::Native, "does not take video/"),
    refusal(Format::Native, "takes no media of video/"),
    refusal(Format::Native, "does not take audio/"),
    refusal(Format::Native, "takes no media of audio/"),
    refusal(Format::Responses, "does not take application/octet-stream"),
    refusal(
        Format::Responses,
        "only documents can be given as a file's id",
    ),
    refusal(Format::Responses, "cannot read stored files"),
];

/// Streams that broke, though they say no word of an error.
pub const BROKEN: &[Refusal] = &[refusal(
    Format::Messages,
    "the upstream's stream starts a second message within the first",
)];

pub fn is_right(table: &[Refusal], format: Format, api_error: &ApiError) -> bool {
    let place = api_error.param.as_deref().unwrap_or_default();
    table.iter().any(|refusal| {
        refusal.format == format
            && (place.contains(refusal.says) || api_error.message.contains(refusal.says))
    })
}
