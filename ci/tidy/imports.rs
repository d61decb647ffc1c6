//! What the files of a crate import from each other: its modules, found by `mod` as the compiler finds them, and the
//! paths that are written in each. A path leads to the file that has the item, also where other modules hand it on.
//!
//! It reads no types: who calls a method imports nothing by that.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::{Line, is_word};

/// How many `use` a path may go on by, since names can lead in a circle.
const STEPS_MAX: usize = 16;

/// A crate's files, by their paths.
pub type Files = BTreeMap<String, File>;

#[derive(Debug)]
pub struct File {
    pub text: String,
    pub lines: Vec<Line>,
}

/// That something of `of` is imported by `by`, both files or both modules.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Import<'a> {
    pub by: &'a str,
    pub of: &'a str,
    /// Where it says so.
    pub file: &'a str,
    /// Counted from 0.
    pub line: usize,
}

/// The modules of a crate: files, and what stands in braces behind `mod`. The first is the root.
pub struct Modules<'a>(Vec<Module<'a>>);

#[derive(Default)]
struct Module<'a> {
    name: &'a str,
    file: &'a str,
    /// None at the root.
    parent: Option<usize>,
    children: BTreeMap<&'a str, usize>,
    items: BTreeSet<&'a str>,
    /// What `use` names here, by its path.
    names: BTreeMap<&'a str, Vec<&'a str>>,
    /// The modules all of whose names `use` takes.
    globs: Vec<Vec<&'a str>>,
    /// With their lines.
    paths: Vec<(Vec<&'a str>, usize)>,
}

/// Where a path leads.
#[derive(Clone, Copy)]
enum Place {
    Module(usize),
    /// An item of this module.
    Item(usize),
    /// Where nothing of the crate is.
    Outside,
}

impl<'a> Modules<'a> {
    /// The modules of the crate whose root is the file `root`.
    pub fn of(root: &'a str, files: &'a Files) -> Self {
        let mut modules = Modules(Vec::new());
        modules.add(None, root);
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        modules.read(0, folder, files);
        modules
    }

    /// What each file takes from others. A module and those in it are one subject: it puts them together, as the root
    /// does with all, and hands on what is in them.
    pub fn of_files(&self) -> Vec<Import<'a>> {
        self.all(|by, path| match self.place(by, path, STEPS_MAX) {
            Place::Item(of) if !self.is_in(of, by) => Some((self.0[by].file, self.0[of].file)),
            _ => None,
        })
    }

    /// What each module below the root names of others. Whoever takes from one what it only hands on names it, too.
    pub fn of_modules(&self) -> Vec<Import<'a>> {
        self.all(|by, path| {
            let mut named = by;
            for name in path {
                let module = &self.0[named];
                let Some(next) = (match *name {
                    "crate" => Some(0),
                    "self" => Some(named),
                    "super" => module.parent,
                    name => module.children.get(name).copied(),
                }) else {
                    break;
                };
                named = next;
            }
            Some((self.below_root(by)?, self.below_root(named)?))
        })
    }

    fn all(&self, arrow: impl Fn(usize, &[&str]) -> Option<(&'a str, &'a str)>) -> Vec<Import<'a>> {
        let mut found = Vec::new();
        for (index, module) in self.0.iter().enumerate() {
            for (path, line) in &module.paths {
                if let Some((by, of)) = arrow(index, path)
                    && by != of
                {
                    let (file, line) = (module.file, *line);
                    found.push(Import { by, of, file, line });
                }
            }
        }
        found
    }

    fn is_in(&self, module: usize, outer: usize) -> bool {
        module == outer
            || self.0[module]
                .parent
                .is_some_and(|parent| self.is_in(parent, outer))
    }

    /// The name of the module that a module is part of; none for the root.
    fn below_root(&self, mut module: usize) -> Option<&'a str> {
        while self.0[module].parent? != 0 {
            module = self.0[module].parent?;
        }
        Some(self.0[module].name)
    }

    fn add(&mut self, parent: Option<(usize, &'a str)>, file: &'a str) -> usize {
        let new = self.0.len();
        self.0.push(Module {
            name: parent.map_or("", |(_, name)| name),
            file,
            parent: parent.map(|(parent, _)| parent),
            ..Module::default()
        });
        if let Some((parent, name)) = parent {
            self.0[parent].children.insert(name, new);
        }
        new
    }

    /// Reads the file of a module, and those of the modules in it, which lie in `folder`.
    fn read(&mut self, module: usize, folder: &str, files: &'a Files) {
        let file = self.0[module].file;
        let tokens = tokens(&files[file].lines);
        let text = |at: usize| tokens.get(at).map_or("", |token| token.0);
        // The modules that are open here, with their folders and the braces around their items.
        let mut open = vec![(module, folder.to_owned(), 0)];
        let (mut depth, mut at) = (0_usize, 0);
        while at < tokens.len() {
            let (module, folder, level) = open[open.len() - 1].clone();
            let before = at.checked_sub(1).map_or("", text);
            // Not `'static` or `*const`, which are parts of types.
            let is_item = depth == level && !matches!(before, "'" | "*");
            let mut next = at + 1;
            match (text(at), text(at + 1), text(at + 2)) {
                ("{", ..) => depth += 1,
                ("}", ..) => {
                    depth = depth.saturating_sub(1);
                    if depth < level {
                        open.pop();
                    }
                }
                ("mod", name, "{") => {
                    depth += 1;
                    let child = self.add(Some((module, name)), file);
                    open.push((child, format!("{folder}/{name}"), depth));
                    next = at + 3;
                }
                ("mod", name, ";") => {
                    let folder = format!("{folder}/{name}");
                    let mut own = vec![format!("{folder}.rs"), format!("{folder}/mod.rs")];
                    own.extend(named_path(file, &files[file].text, tokens[at].1));
                    if let Some((file, _)) = own.iter().find_map(|path| files.get_key_value(path)) {
                        let child = self.add(Some((module, name)), file);
                        self.read(child, &folder, files);
                    }
                }
                // With a `<` it says what a type captures.
                ("use", first, _) if first != "<" => {
                    next = self.0[module].read_use(&tokens, at + 1, &[]);
                }
                ("macro_rules", "!", name) | ("static", "mut", name) if is_item => {
                    self.0[module].items.insert(name);
                }
                (
                    "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static",
                    name,
                    _,
                ) if is_item => {
                    self.0[module].items.insert(name);
                }
                // Whoever calls a macro imports what it names by `$crate`.
                (first, "::", _) if first.starts_with(is_word) && before != "$" => {
                    let mut names = vec![first];
                    while text(next) == "::" && text(next + 1).starts_with(is_word) {
                        names.push(text(next + 1));
                        next += 2;
                    }
                    self.0[module].paths.push((names, tokens[at].1));
                }
                // A path of another crate, or one that goes on behind the parameters of a type.
                ("::", name, _) if name.starts_with(is_word) => next = at + 2,
                _ => {}
            }
            at = next;
        }
    }

    /// Where `path` leads, which stands in a module.
    fn place(&self, module: usize, path: &[&str], steps: usize) -> Place {
        let above = |module: usize| self.0[module].parent.map_or(Place::Outside, Place::Module);
        let mut place = Place::Module(module);
        for (at, name) in path.iter().enumerate() {
            let Place::Module(module) = place else {
                break;
            };
            place = match *name {
                "crate" => Place::Module(0),
                "self" => place,
                "super" => above(module),
                name => self
                    .name(module, name, at + 1 == path.len(), steps)
                    .unwrap_or(match at {
                        // Another crate, a type or a variable.
                        0 => Place::Outside,
                        // A macro may define it, and `*` is all that is there.
                        _ => Place::Item(module),
                    }),
            };
        }
        place
    }

    /// What `name` means in a module. Of a function and a module with one name, a path that `ends` here means the
    /// function.
    fn name(&self, module: usize, name: &str, ends: bool, steps: usize) -> Option<Place> {
        let Some(steps) = steps.checked_sub(1) else {
            return Some(Place::Outside);
        };
        let this = &self.0[module];
        let child = this.children.get(name).map(|&child| Place::Module(child));
        let item = this.items.contains(name).then_some(Place::Item(module));
        let used = || Some(self.place(module, this.names.get(name)?, steps));
        let (first, last) = if ends { (item, child) } else { (child, item) };
        let taken = || {
            this.globs
                .iter()
                .find_map(|path| match self.place(module, path, steps) {
                    Place::Module(from) => self.name(from, name, ends, steps),
                    _ => None,
                })
        };
        first.or_else(used).or(last).or_else(taken)
    }
}

impl<'a> Module<'a> {
    /// Reads one part of what stands behind `use`. Returns where the next one begins.
    fn read_use(&mut self, tokens: &[Token<'a>], mut at: usize, before: &[&'a str]) -> usize {
        let text = |at: usize| tokens.get(at).map_or("", |token| token.0);
        let mut path = before.to_vec();
        loop {
            match text(at) {
                "::" => {}
                "{" => {
                    at += 1;
                    while !matches!(text(at), "}" | "") {
                        at = self.read_use(tokens, at, &path);
                    }
                    return at + 1;
                }
                "*" => {
                    self.globs.push(path.clone());
                    path.push("*");
                    self.paths.push((path, tokens[at].1));
                    return at + 1;
                }
                name if name.starts_with(is_word) => {
                    if name != "self" || path.is_empty() {
                        path.push(name);
                    }
                    if text(at + 1) != "::" {
                        let (name, end) = match text(at + 1) {
                            "as" => (text(at + 2), at + 3),
                            _ => (path[path.len() - 1], at + 1),
                        };
                        self.names.entry(name).or_insert_with(|| path.clone());
                        self.paths.push((path, tokens[at].1));
                        return end;
                    }
                }
                _ => return at + 1,
            }
            at += 1;
        }
    }
}

/// The path that an attribute above the line of a `mod` names, below the folder of its file.
fn named_path(file: &str, text: &str, line: usize) -> Option<String> {
    let above = text.lines().nth(line.checked_sub(1)?)?.trim();
    let name = above.strip_prefix("#[path = \"")?.strip_suffix("\"]")?;
    Some(format!("{}/{name}", file.rsplit_once('/')?.0))
}

/// A word, `::` or another character, with its line.
type Token<'a> = (&'a str, usize);

/// The code of a file without its tests.
fn tokens(lines: &[Line]) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.in_test) {
        let mut rest = line.code.trim_start();
        while let Some(c) = rest.chars().next() {
            let len = if is_word(c) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                c.len_utf8()
            };
            tokens.push((&rest[..len], index));
            rest = rest[len..].trim_start();
        }
    }
    tokens
}
