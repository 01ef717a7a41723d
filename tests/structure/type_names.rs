//! A type's name occurs once in the crate, so that it can be searched for.

use std::collections::BTreeMap;

use syn::Item;
use syn::visit::{self, Visit};

use super::imports::{Crate, is_for_tests};

#[derive(Default)]
struct TypeNames(Vec<String>);

impl<'ast> Visit<'ast> for TypeNames {
    fn visit_item(&mut self, item: &'ast Item) {
        match item {
            Item::Struct(item) => self.0.push(item.ident.to_string()),
            Item::Enum(item) => self.0.push(item.ident.to_string()),
            Item::Trait(item) => self.0.push(item.ident.to_string()),
            Item::Type(item) => self.0.push(item.ident.to_string()),
            Item::Mod(item) if item.attrs.iter().any(is_for_tests) => return,
            // `from_json! { struct Name … }`
            Item::Macro(item) if item.ident.is_none() => self.read_macro(&item.mac),
            _ => {}
        }
        visit::visit_item(self, item);
    }
}

impl TypeNames {
    fn read_macro(&mut self, invocation: &syn::Macro) {
        let tokens = invocation.tokens.to_string();
        let words: Vec<&str> = tokens.split_whitespace().collect();
        for pair in words.windows(2) {
            if matches!(pair[0], "struct" | "enum") {
                self.0.push(pair[1].to_owned());
            }
        }
    }
}

#[test]
fn a_type_name_occurs_once() {
    let mut files: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let source = Crate::read();
    for module in source.0.values() {
        let mut names = TypeNames::default();
        names.visit_file(&module.syntax);
        for name in names.0 {
            files.entry(name).or_default().push(&module.file);
        }
    }
    assert!(files.len() > 500, "types were found: {}", files.len());
    files.retain(|_, files| files.len() > 1);
    assert!(files.is_empty(), "types of one name: {files:#?}");
}
