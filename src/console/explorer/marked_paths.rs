//! Paths with marks, as a tree that is walked beside a document: the work does not depend on how long a path is.

use std::collections::HashMap;

use crate::console::views::Mark;

/// The paths that a document is to be marked at.
#[derive(Debug)]
pub struct MarkedPaths {
    /// The first one is the document itself.
    nodes: Vec<PathNode>,
    is_found: Vec<bool>,
}

#[derive(Debug, Default)]
struct PathNode {
    members: HashMap<String, usize>,
    items: HashMap<usize, usize>,
    /// With its number among the paths.
    marks: Vec<(Mark, usize)>,
}

impl Default for MarkedPaths {
    fn default() -> MarkedPaths {
        MarkedPaths {
            nodes: vec![PathNode::default()],
            is_found: Vec::new(),
        }
    }
}

impl MarkedPaths {
    /// Adds a path such as `messages[0].content[1]`, and returns its number.
    pub fn add(&mut self, path: &str, mark: Mark) -> usize {
        let mut node = 0;
        for name in path.split('.') {
            let (name, items) = name.split_at(name.find('[').unwrap_or(name.len()));
            if !name.is_empty() {
                node = self.member_or_new(node, name);
            }
            for item in items.split(['[', ']']).filter(|item| !item.is_empty()) {
                node = match item.parse() {
                    Ok(index) => self.item_or_new(node, index),
                    Err(_) => self.member_or_new(node, item),
                };
            }
        }
        let number = self.is_found.len();
        self.is_found.push(false);
        // The document as a whole is never marked.
        if node > 0 {
            self.nodes[node].marks.push((mark, number));
        }
        number
    }

    fn member_or_new(&mut self, node: usize, name: &str) -> usize {
        if let Some(found) = self.nodes[node].members.get(name) {
            return *found;
        }
        self.nodes.push(PathNode::default());
        let new = self.nodes.len() - 1;
        self.nodes[node].members.insert(name.to_owned(), new);
        new
    }

    fn item_or_new(&mut self, node: usize, index: usize) -> usize {
        if let Some(found) = self.nodes[node].items.get(&index) {
            return *found;
        }
        self.nodes.push(PathNode::default());
        let new = self.nodes.len() - 1;
        self.nodes[node].items.insert(index, new);
        new
    }

    /// Tells whether a document had the path of a number.
    pub fn is_found(&self, number: usize) -> bool {
        self.is_found.get(number).copied().unwrap_or(false)
    }

    pub const fn root() -> Option<usize> {
        Some(0)
    }

    pub fn member(&self, node: Option<usize>, name: &str) -> Option<usize> {
        self.nodes.get(node?)?.members.get(name).copied()
    }

    /// A path that names a member where a document has a list of objects means that of any of them.
    pub fn item(&self, node: Option<usize>, index: usize) -> Option<usize> {
        let own = self.nodes.get(node?)?;
        let found = own.items.get(&index).copied();
        found.or(node.filter(|_| own.items.is_empty() && !own.members.is_empty()))
    }

    /// The strongest mark of a place, which is now found.
    pub fn visit(&mut self, node: Option<usize>) -> Option<Mark> {
        let node = self.nodes.get(node?)?;
        for (_, number) in &node.marks {
            self.is_found[*number] = true;
        }
        node.marks.iter().map(|(mark, _)| *mark).max()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_walked_step_by_step() {
        let mut paths = MarkedPaths::default();
        let first = paths.add("messages[0].content[12].detail", Mark::Dropped);
        let other = paths.add("tools.googleSearch", Mark::Adjusted);
        let prose = paths.add("usage: tokens of audio", Mark::Dropped);
        let messages = paths.member(MarkedPaths::root(), "messages");
        assert_eq!(paths.visit(messages), None);
        let content = paths.member(paths.item(messages, 0), "content");
        assert_eq!(paths.item(content, 0), None);
        let detail = paths.member(paths.item(content, 12), "detail");
        assert_eq!(paths.visit(detail), Some(Mark::Dropped));
        assert!(paths.is_found(first) && !paths.is_found(other));
        let tools = paths.member(MarkedPaths::root(), "tools");
        let search = paths.member(paths.item(tools, 3), "googleSearch");
        assert_eq!(paths.visit(search), Some(Mark::Adjusted));
        assert!(paths.is_found(other) && !paths.is_found(prose));
    }

    #[test]
    fn what_is_no_path_harms_nothing() {
        let mut paths = MarkedPaths::default();
        for odd in [
            "", ".", "[", "]", "[]", "a[", "a[b]", "[0][1]", "...x[[[", "0",
        ] {
            paths.add(odd, Mark::Dropped);
        }
        assert_eq!(paths.visit(MarkedPaths::root()), None);
    }
}
