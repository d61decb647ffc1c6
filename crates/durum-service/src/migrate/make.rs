//! Fills the new puddles.

use durum_format::Uuid;
use durum_format::puddle::PuddleHeader;
use durum_format::types::PointerAt;
use durum_persist::Site;
use durum_persist::file::MediaFile;

use super::check::{Places, Seen, led, pointers};
use super::heap::{Led, Links, put};
use super::leads::{Lead, Leads};
use super::objects::renew_ids;
use super::old::Old;
use super::program::{Asking, begin};
use super::table::Table;
use super::visit::{Visit, go_over};
use super::{MigrateOptions, Migration};
use crate::copying;
use crate::dump::heap::Image;
use crate::error::{Error, Result};
use crate::files::grown;
use crate::roles::Role;

const MADE: Site = Site("migrated puddle");

/// Where new puddles come.
pub(super) struct Making<'m> {
    /// The new puddles, in their order, pool by pool.
    pub(super) headers: &'m [PuddleHeader],
    /// The store.
    pub(super) store: &'m std::path::Path,
    /// The pointers that were found before.
    pub(super) seen: &'m Seen,
    /// Makes the file of one.
    pub(super) create: &'m dyn Fn(&PuddleHeader) -> Result<MediaFile>,
}

impl Making<'_> {
    /// Makes all files, whose names are not durable yet. `written` is given each, in their order.
    ///
    /// # Errors
    /// `MigrationRefused` where a function says something else than before; `StorageFull`, `Damaged`, `Io`.
    pub(super) fn make(
        &self,
        old: &Old<'_>,
        migration: &mut Migration<'_>,
        options: &MigrateOptions,
        table: &mut Table,
        mut written: impl FnMut(Uuid, MediaFile),
    ) -> Result<()> {
        begin(old, migration)?;
        let mut asking = Asking::of(migration, None);
        let (mut places, mut leads) = (Places::default(), Leads::default());
        let (mut found, mut seen) = (Vec::new(), Seen::default());
        let mut links = Links::default();
        let mut write = |puddle: usize, image: Image| self.write(puddle, &image, &mut written);
        let changed = || Error::MigrationRefused {
            store: self.store.to_owned(),
            pool: old.name().to_owned(),
            reasons: vec![
                "a function gives something else for an object than it gave before".to_owned(),
            ],
        };
        go_over(old, options, old.numbers.objects(), |visit| {
            let place = places.place(visit.pool, &visit.wanted, &mut write)?;
            let place = place.filter(|place| *place == table.runs().place(visit.index));
            let (Some(place), Some(image)) = (place, &mut places.image) else {
                return Err(changed());
            };
            let range = place.offset as usize..(place.offset + visit.new_size) as usize;
            let Some(new) = image.bytes.get_mut(range) else {
                return Err(changed());
            };
            self.object(
                old,
                visit,
                new,
                (&mut asking, &mut leads, &mut links, &mut found),
                table,
            )?;
            seen.see(visit.index, &found);
            match asking.failed.take() {
                Some(_) => Err(changed()),
                None => Ok(()),
            }
        })?;
        // What was checked, and counted, is what was found before.
        if !seen.is_same(self.seen) {
            return Err(changed());
        }
        places.end(old.pools.len(), &mut write)
    }

    /// Makes a new object, which is zero yet.
    fn object(
        &self,
        old: &Old<'_>,
        visit: &Visit<'_>,
        new: &mut [u8],
        (asking, leads, links, found): (
            &mut Asking<'_, '_>,
            &mut Leads,
            &mut Links,
            &mut Vec<(PointerAt, u64)>,
        ),
        table: &mut Table,
    ) -> Result<()> {
        found.clear();
        let Some(conversion) = visit.conversion else {
            new.copy_from_slice(visit.bytes);
            return Ok(());
        };
        let is_husk = visit.is_husk();
        if !is_husk {
            asking.address = visit.view.header().address + visit.object.offset;
            conversion
                .convert(visit.bytes, new, asking)
                .map_err(|wrong| visit.damaged(&wrong))?;
            if let Some(pool) = old.pools.get(visit.pool) {
                renew_ids(old, pool, conversion, new);
            }
            pointers(old, visit, new, found)?;
            for (pointer, address) in found.iter() {
                let Led { lead, .. } = led(old, leads, visit, new, pointer, *address)?;
                let to = match lead {
                    Lead::Object { index, offset, .. } => self.begin(table, index) + offset,
                    Lead::Elsewhere => *address,
                    Lead::Refused(refusal) => {
                        asking.failed = Some(refusal);
                        *address
                    }
                };
                put(new, pointer.offset, to);
            }
        }
        if visit.new_role == Role::Counted {
            let (strong, weak) = table.counts(visit.index);
            // One that nothing leads to is a leak, and none whose value is gone.
            let strong = if is_husk { 0 } else { strong.max(1) };
            put(new, 0, strong);
            put(new, 8, weak);
        }
        if let (Some(kind), Some(heap)) = (visit.new_kind, &old.heap) {
            let to = |table: &mut Table, index| self.begin(table, index);
            links.put(visit, (kind, heap), new, table, to);
        }
        Ok(())
    }

    /// Where a new object begins.
    fn begin(&self, table: &mut Table, index: u64) -> u64 {
        let place = table.runs().place(index);
        let header = self.headers.get(place.puddle as usize);
        header.map_or(0, |header| header.address + place.offset)
    }

    fn write(
        &self,
        puddle: usize,
        image: &Image,
        written: &mut impl FnMut(Uuid, MediaFile),
    ) -> Result<()> {
        let Some(header) = self.headers.get(puddle) else {
            return Ok(());
        };
        let file = (self.create)(header)?;
        written(header.uuid, file.clone());
        copying::write(&file, header, &image.bytes)?;
        // ORDER: contents are durable before the registry names the puddle, and forgets the one that they come from.
        file.sync(MADE)
            .map_err(|error| grown("writing a puddle", file.path(), header.file_size(), error))
    }
}
