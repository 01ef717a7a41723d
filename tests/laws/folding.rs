//! A reply in pieces, put together again, is the reply.

use omniglot::model::{Arguments, Fold, PartKind, Response};
use proptest::prelude::*;

use crate::many;
use crate::replies::anything;

/// With the arguments of calls as text, which is all that pieces can say.
fn in_text(mut response: Response<'_>) -> Response<'_> {
    for choice in &mut response.choices {
        for part in &mut choice.parts {
            if let PartKind::Call(call) = &mut part.kind {
                call.arguments = Arguments::Text(call.arguments.to_text());
            }
        }
    }
    response
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn pieces_make_up_the_reply_they_are_of(response in anything()) {
        let mut fold = Fold::default();
        response.unfold(&mut |event| fold.push(event));
        prop_assert_eq!(fold.finish(), in_text(response));
    }
}
