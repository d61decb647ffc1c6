//! Objects of which each has one pointer to the next.

use std::collections::HashSet;

use super::cuts::ELEMENT;
use super::place::Place;
use super::read::{Reader, is_shown};
use super::{At, Content, List, ListKind, Object, Objects, shape};
use crate::types::{Descriptor, Field, Strength, Struct, Type};

impl<'o, O: Objects + ?Sized> Reader<'o, '_, O> {
    /// An object that a pointer leads to, with those behind it where they are a chain.
    pub(super) fn chain_or_object(
        &mut self,
        object: &Object,
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Content {
        let descriptor = self.memory.objects.descriptor(object.type_id);
        let link = descriptor.and_then(|of| Some((of, shape::link(of)?)));
        match link {
            Some((of, link)) => self.chain(object, (of, link), path, depth, nesting),
            None => self.object(object, path, depth, nesting),
        }
    }

    /// Objects of which each has one pointer to the next.
    fn chain(
        &mut self,
        first: &Object,
        (of, link): (&'o Descriptor, (&'o Field<usize>, u64)),
        path: &str,
        depth: usize,
        nesting: usize,
    ) -> Content {
        let (link, link_at) = link;
        let mut elements = Vec::new();
        let mut object = *first;
        let (mut end, mut is_cut) = (None, false);
        let (mut more, mut is_at_least) = (0, false);
        loop {
            let at = elements.len();
            let path = format!("{path}[{at}]");
            self.shown.insert(object.start, path.clone());
            let place = match Place::of_object(&object, of) {
                Ok(place) if !place.is_row() => place,
                Ok(_) | Err(_) => {
                    let content = self.object(&object, &path, depth, nesting);
                    elements.push((at as u64, content));
                    break;
                }
            };
            let Type::Struct(Struct { name, fields, .. }) = place.ty else {
                break;
            };
            let mut named = Vec::new();
            for field in fields.iter().filter(|field| !std::ptr::eq(*field, link)) {
                if !is_shown(place.ty, field) {
                    continue;
                }
                let path = format!("{path}.{}", field.name);
                let value = self.place(&place.field(field), &path, depth, nesting);
                named.push((field.name.clone(), value));
            }
            let content = Content::Struct {
                name: self.memory.objects.name_for_people(name),
                fields: named,
            };
            elements.push((at as u64, content));
            let next = match self.memory.word(&place, link_at) {
                Ok(0) => break,
                Ok(next) => next,
                Err(why) => {
                    end = Some(Box::new(Content::Invalid(why)));
                    break;
                }
            };
            match self.memory.objects.at(next) {
                At::Object(found)
                    if found.start == next
                        && found.type_id == of.id()
                        && !self.shown.contains_key(&next) =>
                {
                    let is_full = elements.len() >= self.limits.elements
                        || self.left == 0
                        || self.shown.len() > self.limits.objects;
                    if is_full {
                        is_cut = true;
                        self.cut += 1;
                        (more, is_at_least) = self.behind(next, (of, link_at));
                        break;
                    }
                    object = found;
                }
                _ => {
                    let path = format!("{path}.{}", link.name);
                    let content = self.pointer(next, Strength::Strong, &path, usize::MAX, nesting);
                    end = Some(Box::new(content));
                    break;
                }
            }
        }
        if elements.len() == 1 && end.is_none() && !is_cut {
            // Nobody has to name the only one by a number.
            self.shown.insert(first.start, path.to_owned());
        }
        let count = elements.len() as u64 + more;
        if is_cut {
            self.cuts.cut(count, is_at_least);
        }
        Content::List(List {
            kind: ListKind::Chain {
                by: link.name.clone(),
                end,
            },
            count,
            vacant: 0,
            filled: count,
            is_at_least,
            elements,
            is_cut,
        })
    }

    /// How many elements of a chain there are from one on that is not shown, and whether there are more that were not
    /// counted.
    fn behind(&mut self, first: u64, (of, link_at): (&'o Descriptor, u64)) -> (u64, bool) {
        let mut seen = HashSet::new();
        let mut next = first;
        loop {
            let object = match self.memory.objects.at(next) {
                At::Object(object) if object.start == next && object.type_id == of.id() => object,
                _ => return (seen.len() as u64, false),
            };
            if self.shown.contains_key(&next) || seen.contains(&next) {
                return (seen.len() as u64, false);
            }
            if !self.cuts.may_count(ELEMENT) {
                return (seen.len() as u64, true);
            }
            seen.insert(next);
            let place = Place::of_object(&object, of);
            let link = place.and_then(|place| self.memory.word(&place, link_at));
            next = link.unwrap_or(0);
        }
    }
}
