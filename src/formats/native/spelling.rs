//! Names of fields, each in every spelling that clients write: `mimeType` and `mime_type` alike.

use crate::json::{Fields, Node, Path};
use crate::model::{Fault, Text};

/// The documented spelling first: it wins, and it is the one that faults name.
pub(super) type Spellings = &'static [&'static str];

pub(super) fn node<'a, 's>(
    fields: &'s mut Fields<'a, '_>,
    spellings: Spellings,
) -> Option<Node<'a, 's>> {
    let (key, value) = spellings
        .iter()
        .find_map(|key| Some((*key, fields.take(key)?)))?;
    Some(Node {
        value,
        path: Path::Key(&fields.path, key),
    })
}

pub(super) fn text<'a>(
    fields: &mut Fields<'a, '_>,
    spellings: Spellings,
) -> Result<Option<Text<'a>>, Fault> {
    node(fields, spellings).map(Node::text).transpose()
}

pub(super) fn each<'a>(
    fields: &mut Fields<'a, '_>,
    spellings: Spellings,
    read: impl FnMut(u32, Node<'a, '_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    node(fields, spellings).map_or(Ok(()), |node| node.each(read))
}

pub(super) fn texts<'a>(node: Node<'a, '_>) -> Result<Vec<Text<'a>>, Fault> {
    let mut texts = Vec::new();
    node.each(|_, node| {
        texts.push(node.text()?);
        Ok(())
    })?;
    Ok(texts)
}
