//! Reads which file of `src` imports from which, as the compiler resolves names.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// A path of names from the root of the crate: `["proxy", "timer", "within"]`.
pub type NamePath = Vec<String>;

/// A module that has a file of its own.
pub struct Module {
    /// Below `src`, as in `proxy/mod.rs`.
    pub file: String,
    pub syntax: syn::File,
    /// The names that `use` brings into the module, and what they stand for.
    imported_names: BTreeMap<String, NamePath>,
    /// The modules of which everything is brought in.
    globs: Vec<NamePath>,
    /// What the code of the module names.
    named: Vec<NamePath>,
}

/// All modules of the crate, by their paths.
pub struct Crate(pub BTreeMap<NamePath, Module>);

impl Crate {
    pub fn read() -> Crate {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut files = BTreeMap::new();
        read_directory(&root, &root, &mut files);
        let paths: BTreeSet<NamePath> = files.keys().cloned().collect();
        let modules = files.into_iter().map(|(path, (file, syntax))| {
            let module = Module::new(&paths, &path, file, syntax);
            (path, module)
        });
        let modules: BTreeMap<NamePath, Module> = modules.collect();
        assert!(modules.len() > 50, "the sources were found");
        Crate(modules)
    }

    /// Each pair of files of which the first imports from the second.
    pub fn imports(&self) -> BTreeSet<(&str, &str)> {
        let mut found = BTreeSet::new();
        for module in self.0.values() {
            for name in module.named.iter().chain(&module.globs) {
                let owner = &self.0[&self.owner(name.clone(), 0)];
                if owner.file != module.file {
                    found.insert((&*module.file, &*owner.file));
                }
            }
        }
        found
    }

    /// The module in which a name is defined, through all re-exports.
    fn owner(&self, name: NamePath, depth: u8) -> NamePath {
        assert!(depth < 16, "a name that is imported in a circle: {name:?}");
        let mut module = NamePath::new();
        for (at, part) in name.iter().enumerate() {
            module.push(part.clone());
            if self.0.contains_key(&module) {
                continue;
            }
            module.pop();
            if let Some(target) = self.0[&module].imported_names.get(part) {
                let mut target = target.clone();
                target.extend_from_slice(&name[at + 1..]);
                return self.owner(target, depth + 1);
            }
            break;
        }
        module
    }
}

fn read_directory(
    root: &Path,
    directory: &Path,
    files: &mut BTreeMap<NamePath, (String, syn::File)>,
) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        let is_test = path.file_stem().is_some_and(|name| name == "tests");
        if is_test {
            continue;
        }
        if path.is_dir() {
            read_directory(root, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let file = path.strip_prefix(root).expect("it is below src");
            let file = file.to_str().expect("text").to_owned();
            let names = file.trim_end_matches(".rs").split('/');
            let mut names: NamePath = names.map(str::to_owned).collect();
            if matches!(names.last().map(String::as_str), Some("mod" | "lib")) {
                names.pop();
            }
            let text = fs::read_to_string(&path).expect("text");
            let syntax = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
            files.insert(names, (file, syntax));
        }
    }
}

impl Module {
    fn new(paths: &BTreeSet<NamePath>, path: &[String], file: String, syntax: syn::File) -> Module {
        let mut reader = Reader {
            paths,
            path,
            imported_names: BTreeMap::new(),
            re_exported: BTreeSet::new(),
            globs: Vec::new(),
            named: Vec::new(),
            first_names: BTreeSet::new(),
        };
        reader.visit_file(&syntax);
        let mut named = reader.named;
        // A name that is handed on is an import only if the module uses it too.
        for (name, target) in &reader.imported_names {
            if !reader.re_exported.contains(name) || reader.first_names.contains(name) {
                named.push(target.clone());
            }
        }
        let (imported_names, globs) = (reader.imported_names, reader.globs);
        Module {
            file,
            syntax,
            imported_names,
            globs,
            named,
        }
    }
}

struct Reader<'a> {
    paths: &'a BTreeSet<NamePath>,
    path: &'a [String],
    imported_names: BTreeMap<String, NamePath>,
    re_exported: BTreeSet<String>,
    globs: Vec<NamePath>,
    named: Vec<NamePath>,
    /// With which names paths in the code begin.
    first_names: BTreeSet<String>,
}

impl Reader<'_> {
    /// The path from the root of the crate, if the name is not one of another crate.
    fn absolute(&self, name: &[String]) -> Option<NamePath> {
        let mut base = self.path.to_vec();
        let mut rest = name;
        match name.first()?.as_str() {
            "crate" => {
                base.clear();
                rest = &name[1..];
            }
            "self" => rest = &name[1..],
            "super" => {}
            child => {
                let child = [self.path, &[child.to_owned()]].concat();
                if !self.paths.contains(&child) {
                    return None;
                }
            }
        }
        while rest.first().is_some_and(|part| part == "super") {
            base.pop();
            rest = &rest[1..];
        }
        base.extend_from_slice(rest);
        Some(base)
    }

    fn read_use(&mut self, tree: &UseTree, before: &mut NamePath, is_re_export: bool) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.read_use(&path.tree, before, is_re_export);
                before.pop();
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.read_use(tree, before, is_re_export);
                }
            }
            UseTree::Name(name) => {
                let name = name.ident.to_string();
                self.add_use(&name, &name, before, is_re_export);
            }
            UseTree::Rename(rename) => {
                let (name, alias) = (rename.ident.to_string(), rename.rename.to_string());
                self.add_use(&name, &alias, before, is_re_export);
            }
            UseTree::Glob(_) => self.globs.extend(self.absolute(before)),
        }
    }

    fn add_use(&mut self, name: &str, alias: &str, before: &mut NamePath, is_re_export: bool) {
        let mut full = before.clone();
        let mut alias = alias.to_owned();
        match name {
            "self" if alias == "self" => alias = before.last().cloned().unwrap_or_default(),
            "self" => {}
            name => full.push(name.to_owned()),
        }
        if let Some(target) = self.absolute(&full) {
            if is_re_export {
                self.re_exported.insert(alias.clone());
            }
            self.imported_names.insert(alias, target);
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        if !attributes(item).iter().any(is_for_tests) {
            visit::visit_item(self, item);
        }
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_re_export = !matches!(item.vis, Visibility::Inherited);
        self.read_use(&item.tree, &mut NamePath::new(), is_re_export);
    }

    /// The path in `pub(in crate::proxy)` imports nothing.
    fn visit_visibility(&mut self, _visibility: &'ast Visibility) {}

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: NamePath = path
            .segments
            .iter()
            .map(|part| part.ident.to_string())
            .collect();
        self.first_names.extend(names.first().cloned());
        if names.len() > 1 {
            self.named.extend(self.absolute(&names));
        }
        visit::visit_path(self, path);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether an item is compiled for tests alone.
pub fn is_for_tests(attribute: &Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else {
        return false;
    };
    list.path.is_ident("cfg") && list.tokens.to_string() == "test"
}
