//! The chunks of a response, folded together, are the response.

use omniglot::model::{Arguments, Fold, PartKind, Response};
use proptest::prelude::*;

use crate::many;
use crate::random_responses::anything;

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
    fn chunks_fold_into_their_response(response in anything()) {
        let mut fold = Fold::default();
        response.unfold(&mut |event| fold.push(event));
        prop_assert_eq!(fold.finish(), in_text(response));
    }
}
