//! Who points to an address: objects of the pool, and of the other pools of the store.

use std::io::Write;
use std::ops::Range;

use durum_format::content::{self, At, Object, Objects, printable};
use durum_format::extent::HeapBytes;
use durum_format::nvl;
use durum_format::types::{Descriptor, Strength};
use serde_json::{Value as Json, json};

use super::pool::{OBJECT_BYTES_MAX, PoolView};
use super::ways::Ways;
use crate::color;
use crate::failure::Failure;
use crate::output::{count, more};

/// The pointers to an address, or into the object there.
pub(crate) struct Referrers {
    address: u64,
    /// What lies there.
    leads_to: String,
    /// The path to it, if that was looked for and found.
    path: Option<String>,
    /// The pool that it lies in, if that is another one than the one that was named.
    pool: Option<String>,
    found: Vec<Referrer>,
    all: u64,
    /// Pools that were not searched, and why.
    unsearched: Vec<(String, String)>,
}

/// A pointer.
pub(crate) struct Referrer {
    object: Object,
    type_name: String,
    /// The pool of the object, if that is another one than the one that was named.
    pool: Option<String>,
    /// The way from the root to the object, if that was looked for and found.
    path: Option<String>,
    /// Where in the object it lies, as it is written behind the path.
    part: String,
    /// Where it leads.
    to: u64,
    is_weak: bool,
}

/// What leads to an address, or into the object there, from all pools of the store.
pub(super) fn leading_to(
    pool: &PoolView<'_>,
    address: u64,
    most: usize,
    damages: &mut Vec<String>,
) -> Result<Referrers, Failure> {
    let Some(holder) = pool.pool_at(address) else {
        let what = match pool.at(address) {
            At::Object(_) => String::new(),
            At::Other(what) | At::Damaged(what) => what,
        };
        return Err(Failure::Refused(format!(
            "{address:#x} lies in no pool ({what}); give the address of an object, as --find and --raw print it"
        )));
    };
    let (mut others, mut unsearched) = (Vec::new(), Vec::new());
    for other in pool.store.pools() {
        if other.uuid == pool.summary.uuid {
            continue;
        }
        match PoolView::open(pool.store, &other.name) {
            Ok(mut view) => {
                view.has_short_names = pool.has_short_names;
                others.push(view);
            }
            Err(why) => unsearched.push((other.name, why.to_string())),
        }
    }
    let is_holder = |view: &&PoolView<'_>| view.summary.uuid == holder.uuid;
    let there = others.iter().find(is_holder).unwrap_or(pool);
    let goal = Search::of(there, address, most, damages);
    let mut whole = Referrers {
        path: Ways::of(there)?.to(there, address),
        pool: (holder.uuid != pool.summary.uuid).then(|| holder.name.clone()),
        unsearched,
        ..goal.found()
    };
    let ranges = Search::of(there, address, most, &mut Vec::new()).ranges;
    for view in std::iter::once(pool).chain(&others) {
        let mut search = Search::of(view, address, most - whole.found.len(), &mut Vec::new());
        search.ranges.clone_from(&ranges);
        search.proxies = Some(Vec::new());
        view.each_object(damages, |object| search.visit(&object))?;
        // Where NVL-C has put an object of its own between, the program means the pointers to that.
        let proxies = search.proxies.take().unwrap_or_default();
        if !proxies.is_empty() {
            search.ranges = proxies
                .iter()
                .map(|(start, _)| *start..*start + 1)
                .collect();
            view.each_object(&mut Vec::new(), |object| {
                search.visit_proxies(&object, &proxies)
            })?;
        }
        let mut found = search.found();
        let is_other = view.summary.uuid != pool.summary.uuid;
        if !found.found.is_empty() {
            let ways = Ways::of(view)?;
            for referrer in &mut found.found {
                referrer.path = ways.shown.get(&referrer.object.start).cloned();
                referrer.pool = is_other.then(|| view.summary.name.clone());
            }
        }
        whole.all += found.all;
        whole.found.append(&mut found.found);
    }
    Ok(whole)
}

/// A search for the pointers that lead to an address, or into the object there.
pub(crate) struct Search<'a, 'b> {
    pool: &'a PoolView<'b>,
    address: u64,
    /// Whatever leads into the object leads to it.
    ranges: Vec<Range<u64>>,
    leads_to: String,
    most: usize,
    found: Vec<Referrer>,
    all: u64,
    /// Objects of NVL-C's runtime that stand for weak pointers, with what they lead to; `None` where they are told as
    /// they are.
    proxies: Option<Vec<(u64, u64)>>,
    /// Of the object that is looked at.
    bytes: Vec<u8>,
}

impl<'a, 'b> Search<'a, 'b> {
    /// Tells of at most so many pointers, and counts the others.
    pub(crate) fn of(
        pool: &'a PoolView<'b>,
        address: u64,
        most: usize,
        damages: &mut Vec<String>,
    ) -> Self {
        let (range, leads_to) = match pool.at(address) {
            At::Object(object) => {
                let name = content::type_name(pool, &object);
                let range = object.start..object.start.saturating_add(object.size);
                (range, format!("{name} at {:#x}", object.start))
            }
            At::Other(what) => (address..address.saturating_add(1), what),
            At::Damaged(why) => {
                damages.push(why.clone());
                (address..address.saturating_add(1), why)
            }
        };
        Search {
            pool,
            address,
            ranges: vec![range],
            leads_to,
            most,
            found: Vec::new(),
            all: 0,
            proxies: None,
            bytes: Vec::new(),
        }
    }

    /// Looks at the pointers of an object. One that contradicts its type is for `durum check`.
    pub(crate) fn visit(&mut self, object: &Object) -> Result<(), Failure> {
        let mut found = Vec::new();
        let descriptor = self.pointers(object, &mut found)?;
        let is_proxy = descriptor.is_some_and(is_proxy);
        for (offset, to, strength) in found {
            match &mut self.proxies {
                Some(proxies) if is_proxy && offset == 0 => proxies.push((object.start, to)),
                _ => self.add(object, offset, to, strength == Strength::Weak),
            }
        }
        Ok(())
    }

    /// Looks at the pointers of an object to one of these proxies: they are the program's weak pointers.
    fn visit_proxies(&mut self, object: &Object, proxies: &[(u64, u64)]) -> Result<(), Failure> {
        let mut found = Vec::new();
        let descriptor = self.pointers(object, &mut found)?;
        if descriptor.is_some_and(is_proxy) {
            return Ok(());
        }
        for (offset, to, _) in found {
            let target = proxies.iter().find(|(start, _)| *start == to);
            self.add(
                object,
                offset,
                target.map_or(to, |(_, target)| *target),
                true,
            );
        }
        Ok(())
    }

    /// The pointers of an object that lead where they are looked for: where they lie in it, and what they hold.
    fn pointers(
        &mut self,
        object: &Object,
        found: &mut Vec<(u64, u64, Strength)>,
    ) -> Result<Option<&'a Descriptor>, Failure> {
        let pool = self.pool;
        let Some(descriptor) = pool.types.by_id(object.type_id) else {
            return Ok(None);
        };
        if !descriptor.has_pointers() || object.size > OBJECT_BYTES_MAX {
            return Ok(None);
        }
        let Some(view) = pool.view_at(object.start) else {
            return Ok(None);
        };
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.resize(object.size_by(descriptor) as usize, 0);
        HeapBytes::read(view, object.start - view.header().address, &mut bytes)?;
        // What NVL-C's runtime keeps in front of the program's data leads to its own.
        let begin = content::start_of(pool, object);
        let _ = descriptor.visit_pointers(&bytes, |pointer| {
            let word = bytes.get(pointer.offset as usize..).unwrap_or_default();
            let to = word
                .first_chunk()
                .map_or(0, |word| u64::from_le_bytes(*word));
            if pointer.offset >= begin && self.ranges.iter().any(|range| range.contains(&to)) {
                found.push((pointer.offset, to, pointer.strength));
            }
        });
        self.bytes = bytes;
        Ok(Some(descriptor))
    }

    fn add(&mut self, object: &Object, offset: u64, to: u64, is_weak: bool) {
        self.all += 1;
        if self.found.len() < self.most {
            self.found.push(Referrer {
                object: *object,
                type_name: content::type_name(self.pool, object),
                pool: None,
                path: None,
                part: content::part_of(self.pool, object, offset).0,
                to,
                is_weak,
            });
        }
    }

    /// What was found.
    pub(crate) fn found(self) -> Referrers {
        Referrers {
            address: self.address,
            leads_to: self.leads_to,
            path: None,
            pool: None,
            found: self.found,
            all: self.all,
            unsearched: Vec::new(),
        }
    }
}

fn is_proxy(descriptor: &Descriptor) -> bool {
    nvl::Kind::of(descriptor) == Some(nvl::Kind::Proxy)
}

impl Referrers {
    /// Hides where pointers lie: paths have the keys of maps, and may go through the case of an enum.
    pub(crate) fn redact(&mut self) {
        self.path = None;
        for found in &mut self.found {
            found.path = None;
            found.part = ".?".to_owned();
        }
    }

    pub(crate) fn print(&self, out: &mut dyn Write) -> Result<(), Failure> {
        let path = self.path.as_ref();
        let path = path.map_or_else(String::new, |path| format!("{}, ", printable(path)));
        let pool = self.pool.as_ref();
        let pool = pool.map_or_else(String::new, |pool| {
            format!(" in pool \"{}\"", printable(pool))
        });
        writeln!(
            out,
            "{} to {:#x}, {path}{}{pool}",
            count(self.all, "pointer"),
            self.address,
            printable(&self.leads_to)
        )?;
        for referrer in &self.found {
            let arrow = if referrer.is_weak { "~>" } else { "->" };
            let begin = match &referrer.path {
                Some(path) => path.clone(),
                None => format!("{} at {:#x}, ", referrer.type_name, referrer.object.start),
            };
            let part = match &referrer.path {
                Some(_) => &referrer.part,
                None => referrer.part.trim_start_matches('.'),
            };
            let pool = referrer.pool.as_ref();
            let pool = pool.map_or_else(String::new, |pool| format!("{}: ", printable(pool)));
            let (begin, part) = (printable(&begin), printable(part));
            let to = referrer.to;
            let apart = match (to.checked_sub(self.address), self.address.checked_sub(to)) {
                (Some(0), _) => String::new(),
                (Some(behind), _) => format!(", {} behind that", count(behind, "byte")),
                (_, before) => format!(", {} before that", count(before.unwrap_or(0), "byte")),
            };
            writeln!(out, "{pool}{begin}{part} {arrow} {to:#x}{apart}")?;
        }
        more(self.all, self.found.len(), out)?;
        for (pool, why) in &self.unsearched {
            writeln!(
                out,
                "{} pool \"{}\" was not searched: {}",
                color::out(color::WARNING, "note:"),
                printable(pool),
                printable(why)
            )?;
        }
        Ok(())
    }

    pub(crate) fn add_to(&self, json: &mut Json) {
        let address = |address: u64| json!(format!("{address:#x}"));
        json["address"] = address(self.address);
        json["leads_to"] = json!(self.leads_to);
        json["count"] = json!(self.all);
        if let Some(path) = &self.path {
            json["path"] = json!(path);
        }
        if let Some(pool) = &self.pool {
            json["lies_in"] = json!(pool);
        }
        if !self.unsearched.is_empty() {
            let pools = self.unsearched.iter();
            json["unsearched"] = pools
                .map(|(pool, why)| json!({ "pool": pool, "reason": why }))
                .collect();
        }
        let pointers = self.found.iter().map(|found| {
            let mut pointer = json!({
                "address": address(found.object.start),
                "type": found.type_name,
                "part": found.part,
                "to": address(found.to),
                "weak": found.is_weak,
            });
            if let Some(path) = &found.path {
                pointer["path"] = json!(format!("{path}{}", found.part));
            }
            if let Some(pool) = &found.pool {
                pointer["pool"] = json!(pool);
            }
            pointer
        });
        json["pointers"] = pointers.collect();
    }
}
