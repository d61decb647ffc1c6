//! Other pools of the store, whose pointers would lead to where things were.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use durum_format::migrate::Refusal;
use durum_format::types::Descriptor;
use durum_format::{Uuid, extent};

use super::old::Old;
use super::{MigrateOptions, Refusals};
use crate::dump::window::Window;
use crate::error::{Error, Result};
use crate::roles::{Role, Tally};

/// Pointers of other pools that lead into these: nobody would have them follow.
pub(super) fn of_others(
    old: &Old<'_>,
    options: &MigrateOptions,
    refusals: &mut Refusals,
) -> Result<()> {
    let reader = old.reader;
    let contents = reader.contents();
    let is_other = |pool: &Uuid| old.pools.iter().all(|it| it.uuid != *pool);
    for (pool, record) in contents.pools.iter().filter(|(pool, _)| is_other(pool)) {
        let name = format!("pool \"{}\"", record.name);
        if contents.quarantine_of(*pool).is_some() {
            let why = "it is in quarantine, so nobody knows whether pointers of it lead here";
            refusals.of_types(Refusal::new(name, why));
            continue;
        }
        let meanings = reader.meanings_of(*pool);
        let mut types: BTreeMap<u64, Option<Descriptor>> = BTreeMap::new();
        for (uuid, _) in contents.puddles_of(*pool) {
            let view = reader.puddle_unguarded(uuid)?;
            let mut window = Window::of(&view);
            for extent in extent::extents(&view, view.header()) {
                let extent = extent.map_err(|error| Error::damaged_heap(view.path(), &error))?;
                if extent.allocated() == 0 {
                    continue;
                }
                let id = meanings.of(extent.type_id());
                let known = match types.entry(id) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(new) => {
                        let text = match id {
                            extent::UNTYPED => None,
                            id => reader.type_text(id)?,
                        };
                        let parsed = text.and_then(|text| Descriptor::parse(&text).ok());
                        new.insert(parsed)
                    }
                };
                let Some(descriptor) = known else {
                    if !options.untyped_hold_no_pointers {
                        let why = "it has objects of unknown type, and nobody knows whether they hold pointers that lead here; say that they hold none, if so";
                        refusals.of_types(Refusal::new(&name, why));
                    }
                    continue;
                };
                if !descriptor.has_pointers() {
                    continue;
                }
                let role = Role::of(descriptor);
                for object in extent.objects() {
                    let bytes = window.bytes(object.offset, object.size)?;
                    let is_husk =
                        role == Role::Counted && Tally::read(bytes).is_some_and(|it| it.is_husk());
                    let mut leads_here = false;
                    // What does not fit its type holds no pointers that anybody follows.
                    let _ = is_husk
                        || descriptor
                            .visit_pointers(bytes, |pointer| {
                                let at = pointer.offset as usize;
                                let word = bytes.get(at..).and_then(|it| it.first_chunk::<8>());
                                let address = word.map_or(0, |word| u64::from_le_bytes(*word));
                                leads_here |= old.has(address);
                            })
                            .is_err();
                    if leads_here {
                        let path = format!("{name}, {}", descriptor.called());
                        let why = "a pointer of it leads into the pool; both are made anew together by `durum migrate --with`, `Migration::with` or `durum_pools_migrate`";
                        refusals.of_object(Refusal::new(path, why));
                    }
                }
            }
        }
    }
    Ok(())
}
