//! What was imported is looked at before anybody gets it: it may have been damaged on its way, and who changed it was
//! not held to anything.

use super::Host;
use super::commit::{Away, Commit};
use super::puddles::Registered;
use crate::error::{Error, Result};
use crate::files;
use crate::registry::contents::{Change, Damage, PoolRecord, looked_at};
use crate::sums::sum_of;

impl Host {
    /// Compares the contents of puddles that are as they came with their sums. That they were is durable on return; so
    /// is that a pool must not be opened because they differ. Gives all puddles, as the registry has them now.
    ///
    /// # Errors
    /// `PoolQuarantined`; what keeps it from reading a puddle.
    pub(super) fn look_at_imported(
        &self,
        away: &Away<'_>,
        puddles: Vec<Registered>,
    ) -> Result<Vec<Registered>> {
        let store = &self.path;
        let mut known = Vec::new();
        let mut changes = Vec::new();
        for (uuid, record) in puddles {
            let Some(sum) = record.origin.and_then(|origin| origin.sum) else {
                known.push((uuid, record));
                continue;
            };
            let name = away.look(|open| open.contents.name_of(record.owner))?;
            let of_pool = |error| files::of_pool(error, store, &name);
            let file = files::open(store, uuid, &record, false).map_err(of_pool)?;
            let found = sum_of(&file)?;
            if found != sum {
                let reason = format!(
                    "its contents sum up to {found:#010x}, those that were exported to {sum:#010x}: it was damaged or changed \
                     before it was imported"
                );
                let damage = Damage {
                    puddle: uuid,
                    reason,
                };
                away.request(|open| {
                    let pool = open.contents.pools.get(&record.owner);
                    let put = pool.map(|pool| {
                        let pool = PoolRecord {
                            damage: Some(damage.clone()),
                            ..pool.clone()
                        };
                        Change::PutPool(record.owner, pool)
                    });
                    Ok(((), Commit::addition(put.into_iter().collect())))
                })?;
                let note = away.look(|open| open.contents.quarantine_of(record.owner))?;
                return Err(match note {
                    Some(note) => Error::quarantined(store, name, note),
                    None => Error::no_pool(store, &name),
                });
            }
            let record = looked_at(&record);
            changes.push(Change::PutPuddle(uuid, record));
            known.push((uuid, record));
        }
        // ORDER: that they were looked at is durable before anything in them is rewritten; else a crash leaves
        // contents with other sums, and their pool in quarantine.
        away.request(|_| Ok(((), Commit::addition(changes.clone()))))?;
        Ok(known)
    }
}
