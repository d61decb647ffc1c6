//! The program's functions, as objects are made by them.

use durum_format::migrate::{Program, Refusal};

use super::old::Old;
use super::{Functions, Migration, OldPuddle, Refusals};
use crate::error::{Error, Result as StoreResult};
use crate::puddle_view::PuddleView;

/// Has the program's functions begin. They look at whatever an old value leads to, in other pools, too.
pub(super) fn begin(old: &Old<'_>, migration: &mut Migration<'_>) -> StoreResult<()> {
    let Some(functions) = &mut migration.functions else {
        return Ok(());
    };
    let contents = old.reader.contents();
    let mut others: Vec<PuddleView> = Vec::new();
    // Without functions nobody looks.
    let makes = (migration.rules.types.values()).any(|rule| rule.made_by.is_some());
    for pool in contents.pools.keys().filter(|_| makes) {
        let is_renewed = old.pools.iter().any(|renewed| renewed.uuid == *pool);
        // One that nobody may read is not looked at, either: what stands in the way is told of its pool.
        if is_renewed || contents.quarantine_of(*pool).is_some() {
            continue;
        }
        for (uuid, _) in contents.puddles_of(*pool) {
            match old.reader.puddle_unguarded(uuid) {
                Err(Error::PoolRefused { .. }) => {}
                view => others.push(view?),
            }
        }
    }
    let puddles = old.views().chain(&others).map(|view| OldPuddle {
        header: view.header(),
        file: view.file(),
    });
    functions.begin(&puddles.collect::<Vec<_>>())
}

/// Asks the functions for the objects of one extent after the other.
pub(super) struct Asking<'a, 'm> {
    functions: Option<&'a mut (dyn Functions + 'm)>,
    /// Where the object begins that is made anew.
    pub(super) address: u64,
    /// Where what is wrong is told, if objects are to be checked.
    pub(super) refusals: Option<Refusals>,
    /// What is wrong though it was not before.
    pub(super) failed: Option<Refusal>,
}

impl<'a, 'm> Asking<'a, 'm> {
    pub(super) fn of(migration: &'a mut Migration<'m>, refusals: Option<Refusals>) -> Self {
        Self {
            functions: match &mut migration.functions {
                Some(functions) => Some(&mut **functions),
                None => None,
            },
            address: 0,
            refusals,
            failed: None,
        }
    }
}

impl Asking<'_, '_> {
    /// Bytes in which a function builds this map anew.
    pub(super) fn room(&self, function: usize, map: &[u8], most: u64) -> u64 {
        let functions = self.functions.as_ref();
        functions.map_or(0, |functions| functions.room(function, map, most))
    }
}

impl Program for Asking<'_, '_> {
    fn make(&mut self, function: usize, at: u64, old: &[u8], new: &mut [u8]) -> Result<(), String> {
        match &mut self.functions {
            Some(functions) => functions.make(function, self.address + at, old, new),
            None => Err("there is no such function".to_owned()),
        }
    }

    fn checks(&self) -> bool {
        self.refusals.is_some()
    }

    fn refuse(&mut self, refusal: Refusal) {
        match &mut self.refusals {
            Some(refusals) => refusals.of_object(refusal),
            None => _ = self.failed.get_or_insert(refusal),
        }
    }
}
