//! Whether a type's name is that of another one before names of types changed.

use std::collections::BTreeMap;

use super::tree::{Field, Struct, Type, Variants};

/// Names of types, and what each was before.
#[derive(Debug, Default)]
pub(crate) struct Renames<'d>(BTreeMap<&'d str, Vec<&'d str>>);

impl<'d> Renames<'d> {
    /// Adds those of a type and of what is in it.
    pub(crate) fn learn(&mut self, ty: &'d Type<usize>) {
        match ty {
            Type::Struct(Struct {
                name, was, fields, ..
            }) => {
                self.add(name, was);
                self.learn_fields(fields);
            }
            Type::Variants(Variants {
                name, was, cases, ..
            }) => {
                self.add(name, was);
                for case in cases {
                    self.learn_fields(&case.fields);
                }
            }
            Type::Array { element, .. } => self.learn(element),
            _ => {}
        }
    }

    fn learn_fields(&mut self, fields: &'d [Field<usize>]) {
        fields.iter().for_each(|field| self.learn(&field.ty));
    }

    pub(crate) fn add(&mut self, name: &'d str, was: &'d [String]) {
        for former in was {
            self.0.entry(name).or_default().push(former);
            // A generic type: what it is called itself has changed, for whatever arguments.
            let (base, old_base) = (base(name), base(former));
            if name[base.len()..] == former[old_base.len()..] && base.len() < name.len() {
                self.0.entry(base).or_default().push(old_base);
            }
        }
    }

    /// Whether a type with the name `new`, that was `formers` before, can be what the type `old` was. Names of generic
    /// types have others in them: where a `Task` became a `Job`, a `PVec<Task>` became a `PVec<Job>`.
    pub(crate) fn can_be(&self, old: &str, new: &str, formers: &[String]) -> bool {
        if old == new {
            return true;
        }
        // Such names say more than the text does (docs/format/types.md, "Objects").
        let says_more = |begin: &str| old.starts_with(begin) || new.starts_with(begin);
        let is_counted = |name: &str| name.starts_with("counted ");
        if says_more("durum ") || is_counted(old) != is_counted(new) {
            return false;
        }
        formers.iter().any(|former| former == old) || self.leads(old, new)
    }

    /// Whether `old` comes out of `new` where some of the names in it become former ones.
    fn leads(&self, old: &str, new: &str) -> bool {
        // `reached[at]` is where in `old` one can be when `new` is read up to `at`; at most 256 × 256 places.
        let mut reached = vec![vec![false; old.len() + 1]; new.len() + 1];
        reached[0][0] = true;
        for at in 0..new.len() {
            if !new.is_char_boundary(at) {
                continue;
            }
            for from in 0..=old.len() {
                if !reached[at][from] {
                    continue;
                }
                let (rest, old_rest) = (&new[at..], &old[from..]);
                let next = rest.chars().next().map_or(0, char::len_utf8);
                if old_rest.starts_with(&rest[..next]) {
                    reached[at + next][from + next] = true;
                }
                // A generic type that had other arguments, in one of another.
                for (name, formers) in self.generic_at(new, at) {
                    for former in formers {
                        if old_rest.starts_with(former) {
                            reached[at + name.len()][from + former.len()] = true;
                        }
                    }
                }
                let word = word_at(new, at);
                for former in self.0.get(word).into_iter().flatten() {
                    if old_rest.starts_with(former) && is_word_end(old, from + former.len()) {
                        reached[at + word.len()][from + former.len()] = true;
                    }
                }
            }
        }
        reached[new.len()][old.len()]
    }

    /// Names of generic types that begin here, with their arguments, and what they were.
    fn generic_at(&self, text: &str, at: usize) -> impl Iterator<Item = (&str, &[&str])> {
        let is_begin = !text[..at].ends_with(is_of_word);
        let begins =
            move |name: &&str| is_begin && name.ends_with('>') && text[at..].starts_with(*name);
        let found = self.0.iter().filter(move |(name, _)| begins(name));
        found.map(|(name, formers)| (*name, formers.as_slice()))
    }
}

/// The name without the arguments of a generic type.
fn base(name: &str) -> &str {
    name.split('<').next().unwrap_or(name)
}

/// `:` as in `index::Task`.
fn is_of_word(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | ':')
}

/// The name that begins here; empty in the middle of one.
fn word_at(text: &str, at: usize) -> &str {
    if text[..at].chars().next_back().is_some_and(is_of_word) {
        return "";
    }
    let rest = &text[at..];
    let end = rest.find(|char| !is_of_word(char)).unwrap_or(rest.len());
    &rest[..end]
}

fn is_word_end(text: &str, at: usize) -> bool {
    !text[at..].starts_with(is_of_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_generic_types_follow_those_in_them() {
        let was = [
            vec!["Task".to_owned(), "Work".to_owned()],
            vec!["Key".to_owned()],
        ];
        let mut renames = Renames::default();
        renames.add("Job", &was[0]);
        renames.add("Id", &was[1]);
        for (old, new) in [
            ("Task", "Job"),
            ("Work", "Job"),
            ("PVec<Task>", "PVec<Job>"),
            ("PHashMap<Key,(Work,Task)>", "PHashMap<Id,(Job,Job)>"),
            ("PVec<Job>", "PVec<Job>"),
            ("counted Task", "counted Job"),
            ("[Key;3]", "[Id;3]"),
        ] {
            assert!(renames.can_be(old, new, &[]), "{old} {new}");
        }
        for (old, new) in [
            ("Job", "Task"),
            ("PVec<Task>", "PBox<Job>"),
            ("Tasks", "Jobs"),
            ("PVec<Tasks>", "PVec<Job>"),
            ("mine::Task", "mine::Job"),
            ("PVec<Task", "PVec<Job>"),
            ("durum Task", "durum Job"),
        ] {
            assert!(!renames.can_be(old, new, &[]), "{old} {new}");
        }
    }

    #[test]
    fn a_generic_type_has_another_name_for_all_arguments() {
        let was = ["Pair<Key,8>".to_owned()];
        let was_id = ["Id".to_owned()];
        let mut renames = Renames::default();
        renames.add("Two<Key,8>", &was);
        renames.add("Key", &was_id);
        assert!(renames.can_be("Pair<Id,8>", "Two<Key,8>", &was));
        assert!(renames.can_be("PVec<Pair<Key,8>>", "PVec<Two<Key,8>>", &[]));
        assert!(!renames.can_be("Pair<Id,9>", "Two<Key,8>", &was));
    }

    #[test]
    fn no_type_becomes_a_counted_one() {
        let was = ["Mine".to_owned()];
        let mut renames = Renames::default();
        renames.add("Other", &was);
        assert!(renames.can_be("Mine", "Other", &was));
        assert!(!renames.can_be("Mine", "counted u64", &was));
        renames.add("counted", &was);
        assert!(!renames.can_be("Mine u64", "counted u64", &[]));
    }
}
