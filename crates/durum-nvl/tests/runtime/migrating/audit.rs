//! Looks at every object of a heap in its files, by the tables of docs/reference/nvl-runtime.md alone: counts are those
//! of the pointers that are there, proxies hang where they belong, and the zero list has what nothing leads to.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use durum_format::extent::objects;
use durum_format::types::Descriptor;
use durum_service::ReadOnlyStore;

/// An object, with the type's name.
pub struct Found {
    pub name: String,
    pub address: u64,
    pub bytes: Vec<u8>,
}

/// Where pointers of elements are, by the names of their allocations.
struct Element {
    name: &'static str,
    size: u64,
    strong: &'static [u64],
    weak: &'static [u64],
}

const ELEMENTS: [Element; 4] = [
    Element {
        name: "nvl task",
        size: 48,
        strong: &[16, 24, 32],
        weak: &[40],
    },
    Element {
        name: "nvl job",
        size: 40,
        strong: &[8, 16],
        weak: &[24],
    },
    Element {
        name: "nvl i32",
        size: 4,
        strong: &[],
        weak: &[],
    },
    Element {
        name: "nvl i64",
        size: 8,
        strong: &[],
        weak: &[],
    },
];

const HEADER: u64 = 48;
const LINK: u64 = 8;
const PINNED: u64 = 1 << 62;

/// All objects of the store's heap, as its recovery would leave them: the root first, the others by address.
///
/// # Errors
/// Why they cannot be read.
pub fn found(store: &Path) -> Result<Vec<Found>, String> {
    fn told(error: impl std::fmt::Display) -> String {
        error.to_string()
    }
    let reader = ReadOnlyStore::open(store).map_err(told)?;
    let pools = reader.pools();
    let pool = pools.iter().find(|pool| pool.name == "heap");
    let pool = pool.ok_or("there is no heap")?;
    let mut puddles = reader.puddles();
    puddles.retain(|puddle| puddle.owner == pool.uuid);
    puddles.sort_by_key(|puddle| (!puddle.is_root, puddle.address));
    let mut names = BTreeMap::new();
    let mut all = Vec::new();
    for puddle in puddles {
        let view = reader.puddle(puddle.uuid).map_err(told)?;
        for object in objects(&view, view.header()) {
            let object = object.map_err(told)?;
            let name = match names.get(&object.type_id) {
                Some(known) => known,
                None => {
                    let text = reader.type_text(object.type_id).map_err(told)?;
                    let text = text.ok_or("an object has no type")?;
                    let descriptor = Descriptor::parse(&text).map_err(told)?;
                    let name = descriptor.name().unwrap_or_default().to_owned();
                    names.entry(object.type_id).or_insert(name)
                }
            };
            all.push(Found {
                name: String::clone(name),
                address: puddle.address + object.offset,
                bytes: view.bytes(object.offset, object.size).map_err(told)?,
            });
        }
    }
    Ok(all)
}

fn ensure(what: &str, found: u64, wanted: u64) -> Result<(), String> {
    match found == wanted {
        true => Ok(()),
        false => Err(format!("{what} is {found:#x}, not {wanted:#x}")),
    }
}

impl Found {
    fn word(&self, at: u64) -> u64 {
        let at = at as usize;
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    fn element(&self) -> Option<&'static Element> {
        ELEMENTS.iter().find(|element| element.name == self.name)
    }

    /// Where its elements end.
    fn end(&self) -> u64 {
        let element = self.element().unwrap();
        self.address + HEADER + self.word(0) * element.size
    }

    /// Its pointers: where each is, what it is, and whether it is weak.
    fn pointers(&self) -> Vec<(u64, u64, bool)> {
        let element = self.element().unwrap();
        let strong = element.strong.iter().map(|at| (at, false));
        let of_element = strong.chain(element.weak.iter().map(|at| (at, true)));
        let of_element: Vec<_> = of_element.collect();
        let places = (0..self.word(0)).flat_map(|index| {
            let begin = HEADER + index * element.size;
            of_element
                .iter()
                .map(move |(at, is_weak)| (begin + *at, *is_weak))
        });
        let pointers = places.map(|(at, is_weak)| (at, self.word(at), is_weak));
        pointers.filter(|(_, word, _)| *word != 0).collect()
    }
}

/// All objects, and where each begins.
struct Audit {
    all: Vec<Found>,
    starts: BTreeMap<u64, usize>,
}

impl Audit {
    fn starting(&self, address: u64, name: &str) -> Result<&Found, String> {
        let found = self.starts.get(&address).map(|at| &self.all[*at]);
        let found = found.filter(|it| match name {
            "" => it.element().is_some(),
            name => it.name == name,
        });
        found.ok_or_else(|| format!("no {name} begins at {address:#x}"))
    }

    /// The allocation in whose elements, or right behind which, an address is.
    fn inside(&self, address: u64) -> Result<usize, String> {
        let below = |address| self.starts.range(..=address).next_back();
        let is_it = |at: &usize| {
            let it = &self.all[*at];
            let has = |it: &Found| (it.address + HEADER..=it.end()).contains(&address);
            it.element().is_some() && has(it)
        };
        let found = below(address).map(|(_, at)| *at).filter(is_it);
        let before = || below(address - 1).map(|(_, at)| *at).filter(is_it);
        found
            .or_else(before)
            .ok_or_else(|| format!("{address:#x} is in no allocation"))
    }

    /// What is wrong with counts, proxies and the zero list; the addresses of what waits to be freed.
    fn judge(&self) -> Result<BTreeSet<u64>, String> {
        let root = self.all.first().ok_or("there is no object")?;
        if root.name != "nvl heap" {
            return Err(format!("the root is a {}", root.name));
        }
        for object in &self.all {
            let Some(element) = object.element() else {
                continue;
            };
            let end = object.word(0).checked_mul(element.size);
            if end.is_none_or(|end| end > object.bytes.len() as u64 - HEADER) {
                return Err(format!("a {} has {} elements", object.name, object.word(0)));
            }
        }
        let mut strong = vec![0; self.all.len()];
        let mut weak: BTreeMap<u64, u64> = BTreeMap::new();
        if root.word(8) != 0 {
            strong[self.inside(root.word(8))?] += 1;
        }
        for object in self.all.iter().filter(|it| it.element().is_some()) {
            for (_, word, is_weak) in object.pointers() {
                if is_weak {
                    self.starting(word, "nvl weak")?;
                    *weak.entry(word).or_default() += 1;
                } else {
                    strong[self.inside(word)?] += 1;
                }
            }
        }
        let (mut waiting, mut hanging) = (BTreeSet::new(), BTreeSet::new());
        for (object, counted) in self.all.iter().zip(strong) {
            if object.element().is_none() {
                continue;
            }
            let pinned = object.word(32) & PINNED;
            ensure(&object.name, object.word(32), counted + pinned)?;
            let is_waiting = counted == 0 && pinned == 0;
            let state = object.word(40);
            let is_said = state & 2 != 0;
            if is_waiting != is_said {
                return Err(format!("{counted} pointers lead to one of state {state}"));
            }
            if is_waiting {
                waiting.insert(object.address);
            } else {
                ensure(
                    "a link of what is not listed",
                    object.word(8) | object.word(16),
                    0,
                )?;
            }
            let mut next = object.word(24);
            while next != 0 {
                let proxy = self.starting(next, "nvl weak")?;
                let target = self.inside(proxy.word(0))?;
                ensure(
                    "what a proxy of it leads to",
                    self.all[target].address,
                    object.address,
                )?;
                if !hanging.insert(next) {
                    return Err(format!("the proxy {next:#x} hangs twice"));
                }
                next = proxy.word(16);
            }
        }
        let mut targets = BTreeSet::new();
        for proxy in self.all.iter().filter(|it| it.name == "nvl weak") {
            let counted = weak.get(&proxy.address).copied().unwrap_or(0);
            ensure("a proxy's count", proxy.word(8), counted)?;
            let target = proxy.word(0);
            if (target != 0) != hanging.contains(&proxy.address) {
                return Err(format!("a proxy for {target:#x} hangs elsewhere"));
            }
            if target != 0 && !targets.insert(target) {
                return Err(format!("{target:#x} has two proxies"));
            }
        }
        let (mut next, mut previous, mut listed) = (root.word(24), 0, BTreeSet::new());
        while next != 0 {
            let object = self.starting(next - LINK, "")?;
            ensure("the link back", object.word(16), previous)?;
            if !listed.insert(object.address) {
                return Err("the zero list is a circle".to_owned());
            }
            (previous, next) = (next, object.word(8));
        }
        match listed == waiting {
            true => Ok(waiting),
            false => Err(format!(
                "{} wait, {} are listed",
                waiting.len(),
                listed.len()
            )),
        }
    }

    /// What it is wherever it lies: what leads to an object has its number, and says how far into it.
    fn told(&self) -> Result<Told, String> {
        let mut told = Vec::new();
        for object in &self.all {
            let mut bytes = object.bytes.clone();
            let mut leads: Vec<(u64, Lead)> = match object.name.as_str() {
                "nvl heap" => vec![(8, Lead::Inside), (24, Lead::Link)],
                "nvl weak" => vec![(0, Lead::Inside), (16, Lead::Proxy)],
                _ => vec![(8, Lead::Link), (16, Lead::Link), (24, Lead::Proxy)],
            };
            if object.element().is_some() {
                leads.extend(
                    object
                        .pointers()
                        .iter()
                        .map(|(at, _, is_weak)| match is_weak {
                            true => (*at, Lead::Proxy),
                            false => (*at, Lead::Inside),
                        }),
                );
                bytes.truncate((object.end() - object.address) as usize);
            }
            for (at, lead) in leads {
                let word = object.word(at);
                if word == 0 {
                    continue;
                }
                let number = match lead {
                    Lead::Inside => self.inside(word)?,
                    Lead::Link => self.starts[&(word - LINK)],
                    Lead::Proxy => self.starts[&word],
                };
                let offset = word - self.all[number].address;
                let place = at as usize..at as usize + 8;
                bytes[place].copy_from_slice(&((number as u64) << 32 | offset).to_le_bytes());
            }
            told.push((object.name.clone(), bytes));
        }
        Ok(told)
    }
}

/// What a word leads to.
enum Lead {
    /// Into an allocation, or right behind it.
    Inside,
    /// The next one of the zero list, or the one before.
    Link,
    Proxy,
}

/// Names of types, and bytes.
pub type Told = Vec<(String, Vec<u8>)>;

/// All objects of a heap, with every byte of what is theirs: equal for heaps that hold the same, wherever that lies.
///
/// # Errors
/// What a count, a proxy or the zero list says that is not so.
pub fn audit(store: &Path) -> Result<Told, String> {
    let all = found(store)?;
    let starts = all.iter().enumerate();
    let starts = starts.map(|(at, object)| (object.address, at)).collect();
    let audit = Audit { all, starts };
    audit.judge()?;
    audit.told()
}
