//! Puddles of sections, for a runtime that records in them how interrupted code goes on (docs/format/section.md).

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use durum_format::puddle::{PuddleKind, heap_offset, heap_size};
use durum_format::{Uuid, code};
use durum_persist::Site;

use std::os::fd::OwnedFd;

use durum_remote::socket::Socket;
use durum_remote::{Given, Waiting};
use durum_service::{InterruptedClient, PuddleOwner, Service};

use crate::alloc::Puddle;
use crate::demand::Follow;
use crate::engine::{self, Engines};
use crate::error::{Error, Result};
use crate::opened::{Pool, Store, StoreInner, tie_without_following};
use crate::options::{PoolOptions, StoreOptions};
use crate::primitive::locked;
use crate::store::enter;

const DEPOSIT: Site = Site("code that completes sections");

/// A puddle of sections of an open store, mapped at its address: as long as any of these is there, and the store is
/// open.
#[derive(Clone, Debug)]
pub struct SectionPuddle(Arc<Puddle>);

impl Store {
    /// Opens a store by a connection to its service, which has made it for this process. No more of the store is known
    /// here than what the service answers; when the connection ends, the client is gone.
    ///
    /// # Errors
    /// As for [`Store::open`] of a service.
    #[doc(hidden)]
    pub fn given(connection: OwnedFd, options: &StoreOptions) -> Result<Self> {
        let socket = Socket::over(connection)
            .map_err(|error| Error::system("taking a connection over", error))?;
        let service: Box<dyn Service> = Box::new(Given::over(socket, Waiting::default())?);
        // Who was given a connection has been given all pools that there are for it.
        let options = options.clone().follow(Follow::Never);
        let inner = StoreInner::new(service.into(), &options)?;
        let tie = tie_without_following(&inner);
        Ok(Self { inner, tie })
    }

    /// Deposits code that completes this client's sections if it is interrupted in some, and where these go on, for a
    /// person (`durum_format::code::places`). Durable when this returns; it goes with the client.
    ///
    /// # Errors
    /// `StorageFull`, `QuotaExceeded` and others of the store; nothing is left behind.
    #[doc(hidden)]
    pub fn deposit(&self, code: &[u8], places: &[u8]) -> Result<()> {
        self.check()?;
        let service = &self.inner.service;
        let size = code::size_for(code.len() as u64 + places.len() as u64);
        let place = |service: &dyn Service| {
            service.create_puddle(PuddleOwner::Client, PuddleKind::Code, size)
        };
        let puddle = self.inner.neighbours.place(place)?;
        let base = heap_offset(size);
        let (file, head) = (&puddle.file, code::Head::of(code, places));
        // ORDER: it is durable before anybody records a section; else a crash leaves a section, and code that is torn.
        let written = (file.write_all_at(&head.encode(), base))
            .and_then(|()| file.write_all_at(code, base + code::HEAD_SIZE as u64))
            .and_then(|()| file.write_all_at(places, base + head.places_offset()))
            .and_then(|()| file.sync(DEPOSIT));
        written.map_err(|error| {
            let _ = service.remove_puddle(puddle.uuid);
            Error::system("depositing code that completes sections", error)
        })
    }

    /// Makes a puddle of sections of 2 MiB: its heap is zero. It is this client's, and is durable when this returns; it
    /// goes with the client, unless that is in a section then.
    ///
    /// # Errors
    /// `StorageFull`, `AddressesExhausted` and others of the store; nothing is left behind.
    #[doc(hidden)]
    pub fn section_puddle(&self) -> Result<SectionPuddle> {
        self.check()?;
        let puddle = self.inner.log_puddle(PuddleKind::Sections)?;
        Ok(SectionPuddle(puddle))
    }

    /// The clients that are gone and were in sections: their pools are refused until these are completed.
    ///
    /// # Errors
    /// Store errors.
    #[doc(hidden)]
    pub fn interrupted(&self) -> Result<Vec<InterruptedClient>> {
        self.check()?;
        Ok(self.inner.service.interrupted()?)
    }

    /// Takes over what such a client has left: its pools are open, and its puddles of sections are mapped. Durable when
    /// this returns: whoever dies before [`InterruptedSections::done`] leaves it to the next one.
    ///
    /// # Errors
    /// Store errors; those of mapping. The client stays interrupted.
    #[doc(hidden)]
    pub fn take_over(&self, left: InterruptedClient) -> Result<InterruptedSections> {
        self.take_over_with(left, engine::ALL)
    }

    /// The same, for code that has no engine but that of heaps.
    ///
    /// # Errors
    /// As for [`Store::take_over`]; `EngineMissing`.
    #[doc(hidden)]
    pub fn take_over_heap(&self, left: InterruptedClient) -> Result<InterruptedSections> {
        self.take_over_with(left, engine::OF_SECTIONS)
    }

    fn take_over_with(
        &self,
        left: InterruptedClient,
        engines: Engines,
    ) -> Result<InterruptedSections> {
        self.check()?;
        let store = &self.inner;
        let taken = store.service.take_over(left.client)?;
        let options = PoolOptions::new();
        let mut pools = Vec::new();
        for grant in taken.pools {
            let _one_at_a_time = locked(&store.opening);
            let pool = enter(store, grant, &options, engines)?;
            pools.push(self.prepared(pool));
        }
        let mut puddles = Vec::new();
        for grant in taken.puddles {
            puddles.push(SectionPuddle(store.map_client_puddle(grant)?));
        }
        Ok(InterruptedSections {
            store: self.clone(),
            left,
            pools,
            puddles,
        })
    }
}

impl Pool {
    /// From here on sections change the pool, too: in place, and nobody announces that. No snapshot is made of it.
    #[doc(hidden)]
    pub fn admit_sections(&self) {
        self.inner.has_sections.store(true, Ordering::Relaxed);
    }
}

/// What a client that is gone has left, and this one has taken over.
#[derive(Debug)]
pub struct InterruptedSections {
    store: Store,
    left: InterruptedClient,
    /// They stay open as long as this is there.
    pools: Vec<Pool>,
    puddles: Vec<SectionPuddle>,
}

impl InterruptedSections {
    /// What the service tells of the client.
    pub fn left(&self) -> &InterruptedClient {
        &self.left
    }

    /// The pools that the client could write.
    pub fn pools(&self) -> &[Pool] {
        &self.pools
    }

    /// The puddles in which the client has recorded its sections.
    pub fn puddles(&self) -> &[SectionPuddle] {
        &self.puddles
    }

    /// All sections have been completed: their records say so, durably, and what they have changed is durable. The
    /// puddles are gone when this returns, durably; the pools are given back, and may be opened.
    ///
    /// # Errors
    /// `PoolInterrupted` where one is under way.
    pub fn done(self) -> Result<Vec<Pool>> {
        // Their addresses are free for others then.
        for puddle in &self.puddles {
            puddle.0.unmap();
        }
        self.store.inner.service.sections_done(self.left.client)?;
        Ok(self.pools)
    }
}

impl SectionPuddle {
    /// Which puddle it is.
    pub fn uuid(&self) -> Uuid {
        self.0.uuid
    }

    /// Where its heap begins, and how many bytes it has.
    pub fn heap(&self) -> (NonNull<u8>, usize) {
        let size = self.0.size as u64;
        (
            self.0.at(heap_offset(size) as usize),
            heap_size(size) as usize,
        )
    }

    /// Its size.
    pub fn size(&self) -> u64 {
        self.0.size as u64
    }
}
