//! The tables for `contents` and `systemInstruction`.

use super::shapes::{ANY_OBJECT, clash, object, optional, required};
use crate::formats::base64_text;
use crate::formats::native::enum_values::{RESULT_ROLES, ROLES};
use crate::formats::native::field_names;
use crate::formats::public_address::is_public_https;
use crate::json::{FieldConflict, ObjectRules, PresentFields, Rule};

pub(super) static CONTENT: ObjectRules = ObjectRules::new(
    &[
        optional(&["role"], Rule::Word(ROLES)),
        optional(&["parts"], Rule::List(&Rule::Object(&PART))),
    ],
    |seen| {
        let is_for_results = seen
            .word("role")
            .is_some_and(|role| RESULT_ROLES.contains(&role));
        if is_for_results && seen.only_field("parts") != Some(field_names::FUNCTION_RESPONSE[0]) {
            return clash(
                "role",
                "user or model, as not all parts are function responses",
            );
        }
        None
    },
);

static PART: ObjectRules = ObjectRules::new(
    &[
        optional(&["text"], Rule::Text),
        optional(field_names::INLINE_DATA, Rule::Object(&INLINE_DATA)),
        optional(field_names::FILE_DATA, Rule::Object(&FILE_DATA)),
        optional(field_names::FUNCTION_CALL, Rule::Object(&FUNCTION_CALL)),
        optional(
            field_names::FUNCTION_RESPONSE,
            Rule::Object(&FUNCTION_RESPONSE),
        ),
        optional(field_names::EXECUTABLE_CODE, Rule::Object(&ANY_OBJECT)),
        optional(
            field_names::CODE_EXECUTION_RESULT,
            Rule::Object(&ANY_OBJECT),
        ),
    ],
    one_payload,
);

fn one_payload(seen: &PresentFields) -> Option<FieldConflict> {
    let second = seen.all().nth(1)?;
    clash(second, "one kind of payload in a part")
}

pub(super) static SYSTEM_CONTENT: ObjectRules = object(&[optional(
    &["parts"],
    Rule::List(&Rule::Object(&SYSTEM_PART)),
)]);

static SYSTEM_PART: ObjectRules = ObjectRules::new(
    &[
        optional(&["text"], Rule::Text),
        optional(field_names::INLINE_DATA, Rule::Object(&ANY_OBJECT)),
        optional(field_names::FILE_DATA, Rule::Object(&ANY_OBJECT)),
        optional(field_names::FUNCTION_CALL, Rule::Object(&ANY_OBJECT)),
        optional(field_names::FUNCTION_RESPONSE, Rule::Object(&ANY_OBJECT)),
        optional(field_names::EXECUTABLE_CODE, Rule::Object(&ANY_OBJECT)),
        optional(
            field_names::CODE_EXECUTION_RESULT,
            Rule::Object(&ANY_OBJECT),
        ),
    ],
    |seen| {
        (!seen.all().eq(["text"])).then_some(FieldConflict {
            field: None,
            expected: "text, as system instructions hold nothing else",
        })
    },
);

static INLINE_DATA: ObjectRules = object(&[
    required(field_names::MIME_TYPE, Rule::Text),
    required(
        &["data"],
        Rule::Form(base64_text::is_base64, "base64 without a data: prefix"),
    ),
    optional(field_names::DISPLAY_NAME, Rule::Text),
]);

static FILE_DATA: ObjectRules = object(&[
    optional(field_names::MIME_TYPE, Rule::Text),
    required(
        field_names::FILE_URI,
        Rule::Form(is_public_https, "a public https URL"),
    ),
    optional(field_names::DISPLAY_NAME, Rule::Text),
]);

static FUNCTION_CALL: ObjectRules = object(&[
    required(&["name"], Rule::Text),
    optional(&["args"], Rule::Object(&ANY_OBJECT)),
    optional(&["id"], Rule::Text),
]);

static FUNCTION_RESPONSE: ObjectRules = object(&[
    required(&["name"], Rule::Text),
    optional(&["response"], Rule::Object(&ANY_OBJECT)),
    optional(
        &["parts"],
        Rule::List(&Rule::Object(&FUNCTION_RESPONSE_PART)),
    ),
    optional(&["id"], Rule::Text),
]);

static FUNCTION_RESPONSE_PART: ObjectRules = ObjectRules::new(
    &[
        optional(field_names::INLINE_DATA, Rule::Object(&INLINE_DATA)),
        optional(field_names::FILE_DATA, Rule::Object(&FILE_DATA)),
    ],
    one_payload,
);
