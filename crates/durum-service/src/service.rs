//! The one interface between a client and the service, embedded or behind a socket.

use std::sync::Arc;
use std::time::Duration;

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_format::types::Meanings;
use durum_persist::file::MediaFile;

use crate::check::{Garbage, GarbageOptions};
use crate::error::{Error, Result};
use crate::import::{Export, ImportOptions, ImportReport};
use crate::model::{
    AddressRange, InterruptedClient, PoolGrant, PoolSpec, PoolSummary, PuddleGrant, PuddleOwner,
    RecoveryReport, RefusedPool, StoreInfo, TakenOver, UsedElsewhere,
};
use crate::picture::{Asked, Picture, ShowFn, ShownAt};
use crate::presence::LostFile;
use crate::strays::StrayFile;

/// Puddles that one request opens at most: a message can carry so many descriptors.
pub const PUDDLES_AT_ONCE: usize = 253;

/// A store, as a client sees it.
///
/// The service hands out puddles and keeps the registry; it is never on the path of a transaction. All
/// methods may be called from any thread. After an error the store is as before the call, unless
/// the error says otherwise.
pub trait Service: Send + Sync {
    /// What this store is, and which client this handle is.
    fn info(&self) -> StoreInfo;

    /// What recovery did when the store was opened. A client hears nothing of pools that it may not read, here and in
    /// errors.
    fn recovery(&self) -> Result<RecoveryReport>;

    /// The pools that the client may read, in order of name.
    fn pools(&self) -> Result<Vec<PoolSummary>>;

    /// Makes a pool with an empty root puddle and opens it.
    ///
    /// The pool, its root puddle and this client's grant are durable on return.
    ///
    /// # Errors
    /// `PoolExists`, `PoolName`, `PuddleSize`, `AddressesExhausted`, `StorageFull`; nothing is left behind.
    fn create_pool(&self, name: &str, spec: &PoolSpec) -> Result<PoolGrant>;

    /// Opens a pool for reading and writing. Of its puddles only the root is opened; the grant tells where the others
    /// lie.
    ///
    /// The grant is durable on return: only then may recovery write to the pool for this client.
    ///
    /// # Errors
    /// `PoolMissing`; `NotPermitted`; `PoolOpen` when this handle has it open, `PoolBusy` when another client has, be
    /// it for reading; `PoolQuarantined` and `PoolRefused` with the cure; `Damaged`, `FileMissing` for a root puddle
    /// whose file is not what the registry says.
    fn open_pool(&self, name: &str) -> Result<PoolGrant>;

    /// Opens puddles of a pool that this client has open, at most [`PUDDLES_AT_ONCE`], in this order. It waits for
    /// nobody's commit: the caller may be what a transaction waits for.
    ///
    /// # Errors
    /// `PoolNotOpen`; `PuddleUnknown`; `PuddleRefused` for a puddle that is not the pool's, and for too many;
    /// `Damaged`, `FileMissing` for a file that is not what the registry says.
    fn open_puddles(&self, pool: Uuid, puddles: &[Uuid]) -> Result<Vec<PuddleGrant>>;

    /// Opens a pool for reading only, until [`Service::close_pool`]. Others may read it meanwhile, and nobody writes
    /// it. Who alone reads it may go on to write it, by [`Service::open_pool`]: nobody comes in between.
    ///
    /// Its files, and those that [`Service::open_puddles`] gives of it, are open for reading: what they hold is what
    /// transactions have committed, all of it. The pool is recovered before, if somebody is gone who wrote it. Nothing
    /// is recorded of it, as recovery never writes for a reader.
    ///
    /// # Errors
    /// As [`Service::open_pool`]; `PoolBusy` while somebody writes it, who is told the same while it is read.
    fn read_pool(&self, name: &str) -> Result<PoolGrant>;

    /// As [`Service::read_pool`], also for a pool in quarantine, or in which sections were interrupted: its files are
    /// as the crash left them, and changes in them may be half done. Nobody accepts such a pool, tries its recovery
    /// again, or completes sections in it, while it is looked at.
    ///
    /// # Errors
    /// As [`Service::read_pool`], but for `PoolQuarantined` and `PoolInterrupted`.
    fn look_at_pool(&self, name: &str) -> Result<PoolGrant>;

    /// What the registry says of pools, their puddles, types, and quarantined logs, as a snapshot in its own format
    /// (docs/format/registry.md); of clients nothing. [`ReadOnlyStore::of`](crate::ReadOnlyStore::of) reads it.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    fn registry(&self) -> Result<Vec<u8>>;

    /// The files of pools that are missing, cut short or unreadable, in order of pool: looks at each file, and not into
    /// it.
    ///
    /// # Errors
    /// `Io`.
    fn lost_files(&self) -> Result<Vec<LostFile>>;

    /// The files in the store's directory that are no part of the store. For root and the service's own user. Nobody
    /// else's request is answered meanwhile.
    ///
    /// # Errors
    /// `NotPermitted`; `Io`.
    fn stray_files(&self) -> Result<Vec<StrayFile>>;

    /// As [`Service::registry`], with the clients that are gone and whose logs are kept. For root and the service's own
    /// user.
    ///
    /// # Errors
    /// `NotPermitted`; as [`Service::registry`].
    fn logs(&self) -> Result<Vec<u8>>;

    /// Opens logs that are kept or in quarantine, for reading, at most [`PUDDLES_AT_ONCE`], in this order. For root and
    /// the service's own user.
    ///
    /// # Errors
    /// `NotPermitted`; `PuddleUnknown`; `PuddleRefused` for what is no log, for one of a client that lives, and for too
    /// many; `Damaged`, `FileMissing` for a file that is not what the registry says.
    fn open_logs(&self, logs: &[Uuid]) -> Result<Vec<MediaFile>>;

    /// The name of the pool that has an address among its puddles, open or not: [`Service::open_pool`] then says
    /// whether this client may use it (Puddles, EuroSys'24, §3.5). It waits for nobody's commit.
    ///
    /// # Errors
    /// `NotPermitted` for a pool that the client may not even read; its name is not told.
    fn pool_at(&self, address: u64) -> Result<Option<String>>;

    /// Gives the pool back. The caller has drained every log that names it.
    ///
    /// The grant is durably gone on return: recovery writes to this pool no more for this client.
    ///
    /// # Errors
    /// `PoolNotOpen`.
    fn close_pool(&self, pool: Uuid) -> Result<()>;

    /// Removes a pool and its puddles.
    ///
    /// It is durably gone on return; files left by a crash in between are collected at the next open.
    ///
    /// # Errors
    /// `PoolMissing`; `NotPermitted` for all but its owner; `PoolOpen` when this handle has it open, `PoolBusy` when
    /// another client has.
    fn remove_pool(&self, name: &str) -> Result<()>;

    /// Adds a puddle to an open pool, of its [engine's kind](crate::EngineKind::puddle_kind), or makes a log or log
    /// space puddle of this client.
    ///
    /// `size` is a multiple of the unit (2 MiB). The file is allocated, zero behind its header, and durable
    /// on return, as is its registration.
    ///
    /// # Errors
    /// `PoolNotOpen`, `PuddleRefused` when kind and owner do not fit, `PuddleSize`,
    /// `AddressesExhausted`, `StorageFull`; nothing is left behind.
    fn create_puddle(&self, owner: PuddleOwner, kind: PuddleKind, size: u64)
    -> Result<PuddleGrant>;

    /// Opens the file of a puddle again, for reading, that this client has mapped and kept no descriptor of. The client
    /// sees for itself whether it is the same file.
    ///
    /// # Errors
    /// `PuddleUnknown`, `PuddleRefused`; `FileMissing`, `NotAFile`.
    fn reopen_puddle(&self, uuid: Uuid) -> Result<MediaFile>;

    /// Gives a puddle back: one of an open pool (never its root puddle), or one of this client.
    ///
    /// It is durably unregistered before its file goes. The caller has drained every log that names it.
    ///
    /// # Errors
    /// `PuddleUnknown`, `PuddleRefused`.
    fn remove_puddle(&self, uuid: Uuid) -> Result<()>;

    /// Tells the service that this puddle of the client is a log space.
    ///
    /// Durable on return: recovery reads the log space from now on. The caller has written the log space's
    /// header, durably, before. No log may be used before the log space that lists it is registered.
    ///
    /// # Errors
    /// `PuddleUnknown`; `PuddleRefused` when it is not a log space puddle of this client.
    fn register_log_space(&self, puddle: Uuid) -> Result<()>;

    /// Records a type descriptor's canonical text under its id. Recording the same again changes nothing.
    ///
    /// Durable on return.
    ///
    /// # Errors
    /// `TypeRefused` when the text does not parse, or does not hash to the id.
    fn register_type(&self, id: u64, text: &str) -> Result<()>;

    /// What ids of types mean in a pool that this client has open, where they mean others: its program has changed its
    /// types ([`Service::change_types`]).
    ///
    /// # Errors
    /// `PoolNotOpen`.
    fn meanings(&self, pool: Uuid) -> Result<Meanings>;

    /// From now on the root of a pool that this client has open for writing, which is an `old`, is a `new`, and so all
    /// that pointers lead to from there: ids with which objects were allocated mean the successors of their types
    /// (docs/format/types.md, "Successors"). Both are registered.
    ///
    /// Durable on return. What a `new` has that an `old` has not may be written from then on, and not before.
    ///
    /// # Errors
    /// `PoolNotOpen`; `TypeRefused` where `new` is no successor of what `old` means in this pool.
    fn change_types(&self, pool: Uuid, old: u64, new: u64) -> Result<Meanings>;

    /// The canonical text of a type, if it is known here.
    fn type_text(&self, id: u64) -> Result<Option<String>>;

    /// All types known here: id and canonical text, in order of id. For root and the service's own user: they are those
    /// of all pools.
    fn types(&self) -> Result<Vec<(u64, String)>>;

    /// The pools that could not be recovered, and what is kept for them, in order of name.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    fn refused_pools(&self) -> Result<Vec<RefusedPool>>;

    /// Drops what recovery keeps for a pool: transactions that committed are lost in it, others stay half done. It can
    /// be opened then, if its files can be. Pools that waited for it are recovered. Durable on return.
    ///
    /// On Hybrid a transaction of which only the pool's file could tell whether it committed is undone in the other
    /// pools; on Shadow it counts there if all its bytes are there.
    ///
    /// # Errors
    /// `PoolMissing`; `NothingKept` for a pool that recovery keeps nothing for, and for a Twin pool; `PoolWaits` for
    /// one whose own files are whole.
    fn give_up(&self, name: &str) -> Result<RecoveryReport>;

    /// Allows a pool that was quarantined to be opened again, after a person has looked at it and accepts
    /// it as it is. The files of the logs stay in `quarantine/`. Durable on return.
    ///
    /// # Errors
    /// `PoolMissing`; `PoolNotQuarantined` for a refused pool; `NothingKept` for any other that is not quarantined;
    /// `PoolBusy`, `PoolOpen` while it is looked at.
    fn accept_quarantined(&self, name: &str) -> Result<()>;

    /// Tries again to replay the quarantined logs of a pool, after the cause was cured. Pools that were accepted since
    /// are not written. Durable on return; the report tells of logs that are still invalid and in quarantine again.
    ///
    /// # Errors
    /// `PoolMissing`; `PoolNotQuarantined` for a refused pool; `NothingKept` for any other that is not quarantined;
    /// `PoolBusy`, `PoolOpen` while it is looked at, or another one that the logs may write.
    fn retry_quarantined(&self, name: &str) -> Result<RecoveryReport>;

    /// The clients that are gone and were in sections, which only their own code can complete
    /// (docs/internals/locks.md): nobody may open the pools that they could write. Those of pools that this client may
    /// read.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    fn interrupted(&self) -> Result<Vec<InterruptedClient>>;

    /// Takes over what a client that is gone has left: its pools are open for writing as by [`Service::open_pool`], and
    /// its puddles of sections are to be written on. Its logs were replayed, and will not be again. Who is killed
    /// before [`Service::sections_done`] leaves everything to whoever takes over next.
    ///
    /// The grants are durable on return.
    ///
    /// # Errors
    /// `PuddleRefused` for a client that has left no sections; `NotPermitted` for all but the user whose client it was,
    /// root and the service's own user; `PoolBusy` where somebody completes them already; `PoolQuarantined`,
    /// `PoolRefused`: its logs are not replayed. Nothing was taken over.
    fn take_over(&self, client: Uuid) -> Result<TakenOver>;

    /// Ends a client whose sections the caller has completed: the records of its threads say that they are in none, and
    /// that, and what the sections have changed, is durable. The pools stay open, and are the caller's alone.
    ///
    /// Its puddles of sections are durably gone on return.
    ///
    /// # Errors
    /// `PuddleRefused` for a client that the caller has not taken over; `PoolInterrupted` while a section is under way.
    fn sections_done(&self, client: Uuid) -> Result<()>;

    /// Allows a pool to be opened again in which sections were interrupted, after a person has looked at it and accepts
    /// it as it is: what they have changed stays half done. Of the clients that left them, other pools are refused as
    /// before; their names are returned. A client with no such pool left ends. Durable on return.
    ///
    /// # Errors
    /// `PoolMissing`; `NotPermitted` for all but its owner; `PoolRefused`; `PoolBusy`, `PoolOpen` while sections are
    /// being completed; `NothingKept` for a pool without any.
    fn abandon_sections(&self, name: &str) -> Result<Vec<String>>;

    /// Looks for garbage in the open store, in which nobody writes a pool. All pools are open for reading afterwards,
    /// as by [`Service::read_pool`], so that what was found stays true: [`Service::open_pool`] goes on to write one.
    ///
    /// # Errors
    /// As [`find_garbage`](crate::find_garbage); `PoolOpen`, `PoolBusy`.
    fn find_garbage(&self, options: &GarbageOptions) -> Result<Garbage>;

    /// Where the store's puddles are now, in order of address, as few ranges as possible.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    fn occupied(&self) -> Result<Vec<AddressRange>>;

    /// The client's process uses these addresses for something else: new puddles that the client asks for are placed
    /// elsewhere, and [`Service::make_way`] clears them. What was said before is forgotten.
    ///
    /// # Errors
    /// `Closed`, `Forked`, `Poisoned`.
    fn avoid(&self, used: &UsedElsewhere) -> Result<()>;

    /// Moves all pools' puddles that are at addresses which the client's process uses for something else
    /// ([`Service::avoid`]) to others. Where everything is to be is durable on return. Pointers are rewritten puddle by
    /// puddle, before each is opened next, in whichever process (Puddles, EuroSys'24, §4.2). Nothing, where nothing is
    /// in the way.
    ///
    /// # Errors
    /// `Unmovable`: a program has a pool of the store open; a pool has objects of unknown type, and the client does not
    /// say that these hold no pointers; a pool is not recovered. `NotPermitted` for all but the owner of all pools,
    /// root and the service's own user. `AddressesExhausted`, `StorageFull`. Nothing was moved.
    fn make_way(&self) -> Result<()>;

    /// Rewrites all puddles whose pointers may lead to where others were, so that nobody who opens the store needs to.
    /// Tells how many these were.
    ///
    /// # Errors
    /// `NotPermitted` for all but the owner of all their pools, root and the service's own user; what is wrong with a
    /// file of a pool: others may have been rewritten.
    fn finish_moving(&self) -> Result<u64>;

    /// Makes the pools of an export the client's own pools. They are durable on return, all or none. Their puddles have
    /// the addresses that they had, where these are free. Contents are compared with their sums, and pointers
    /// rewritten, before each is opened next (Puddles, EuroSys'24, §3.5).
    ///
    /// # Errors
    /// `PoolExists`, `PoolName`; `ImportRefused`; `Format`, `Damaged`, `FileMissing` for files of the export that are
    /// not what its manifest says; `TypeRefused`, `AddressesExhausted`, `QuotaExceeded`, `StorageFull`. Nothing has
    /// changed, neither here nor there.
    fn import(&self, export: &Export, options: &ImportOptions) -> Result<ImportReport>;

    /// Has the program that writes a pool show it as it is at one moment, and waits for that, for so long at most. What
    /// is shown is that program's word, and no more to be believed than a file that came from anywhere. Beside it comes
    /// what [`Service::registry`] says while all that is shown is still the pool's: it may have given puddles back
    /// since.
    ///
    /// # Errors
    /// `PoolMissing`, `NotPermitted` for who may not read it; `PoolBusy` where nobody can be asked; `Told` with what
    /// that program says, that it does not answer in time, or shows the pool to another one.
    fn show_pool(&self, name: &str, _wait: Duration) -> Result<(Vec<u8>, Box<dyn Picture>)> {
        Err(Error::PoolBusy {
            name: name.to_owned(),
        })
    }

    /// Has `show` called when somebody wants to see a pool that this client writes. A service in this process never
    /// calls it.
    fn when_asked_to_show(&self, _show: Arc<ShowFn>) {}

    /// An empty file for what this client shows of the pool that it was asked about ([`Service::when_asked_to_show`]).
    ///
    /// # Errors
    /// `PoolBusy`, or `Told`, once nobody waits for it any more.
    fn showing_file(&self, asked: Asked) -> Result<MediaFile> {
        Err(nobody_asks(asked))
    }

    /// All of the pool is in that file, [`SHOWN_MAX`](crate::SHOWN_MAX) puddles at most; or it cannot be shown, for
    /// this reason. On return who has asked knows which puddles these are, and the client may give them back.
    ///
    /// # Errors
    /// As [`Service::showing_file`].
    fn end_showing(
        &self,
        asked: Asked,
        _shown: std::result::Result<&[ShownAt], &str>,
    ) -> Result<()> {
        Err(nobody_asks(asked))
    }

    /// Has `tell` called once the service knows this client no more, because it took it for gone: its pools were
    /// recovered, and may be another's. Whatever the client writes from then on is lost, or torn. A service in this
    /// process never calls it.
    fn when_lost(&self, _tell: Box<dyn FnOnce() + Send>) {}

    /// Changes who may use a pool: the bits `r` and `w` of owner, group and others, as of a file. Who has it open keeps
    /// it. Durable on return.
    ///
    /// # Errors
    /// `PoolMissing`; `NotPermitted` for all but the owner, root and the service's own user; `ModeRefused`.
    fn set_mode(&self, name: &str, mode: u16) -> Result<()>;

    /// Changes whose a pool is; `None` leaves user or group as it is. Durable on return.
    ///
    /// # Errors
    /// `PoolMissing`; `NotPermitted`: an owner may choose a group that it is in, all else is for root and the service's
    /// own user.
    fn set_owner(&self, name: &str, uid: Option<u32>, gid: Option<u32>) -> Result<()>;

    /// Gives a pool that nobody has open new files with the same contents: who has kept a descriptor, or has it mapped
    /// yet, reaches the pool no more. Durable on return.
    ///
    /// # Errors
    /// `PoolMissing`; `NotPermitted` for all but the owner, root and the service's own user; `PoolBusy` and `PoolOpen`;
    /// `PoolQuarantined`, `PoolRefused`; `StorageFull`: the files that were replaced stay so.
    fn revoke_pool(&self, name: &str) -> Result<()>;

    /// Whether somebody wants that the program closes its pools and the store, and will end it if it does not
    /// (`durum kick`).
    fn is_asked_to_leave(&self) -> bool {
        false
    }

    /// Ends this client: its logs and log spaces are removed, the store is marked clean, the lock is given up.
    ///
    /// The caller has drained all its logs. Calling it again does nothing. Dropping the handle without
    /// this call is like a crash: the next opener recovers.
    fn close(&self) -> Result<()>;
}

fn nobody_asks(asked: Asked) -> Error {
    let name = asked.pool.to_string();
    Error::PoolBusy { name }
}
