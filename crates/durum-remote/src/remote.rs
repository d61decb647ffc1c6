//! A store that another process serves.

mod kick;

use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_format::types::Meanings;
use durum_persist::file::MediaFile;
use durum_protocol::message::{ClientView, MANIFEST_MAX, OpenPool};
use durum_protocol::{Answer, Grant, Request};
use durum_service::{
    AddressRange, Asked, Error, Export, Garbage, GarbageOptions, ImportOptions, ImportReport,
    InterruptedClient, LostFile, Picture, PoolGrant, PoolSpec, PoolSummary, Progress, PuddleGrant,
    PuddleOwner, RecoveryReport, RefusedPool, Result, SHOWN_MAX, Service, ShowFn, ShownAt,
    ShownFile, Stage, StoreInfo, StrayFile, TakenOver, UsedElsewhere, random_uuid,
};

use crate::connection::{Connection, Waiting, Way, gone};
use crate::file::received;

/// Bytes of a manifest that are sent at once.
const MANIFEST_PART: usize = 512 << 10;

/// A client of a store that another process serves.
///
/// Dropping it without [`Service::close`] is like the end of a client's process: the service recovers its pools. In a
/// forked child every call is refused, and dropping it does nothing to the parent's.
#[derive(Debug)]
pub struct Remote {
    /// Kept in a forked child: dropping it would end the parent's connection.
    connection: std::mem::ManuallyDrop<Arc<Connection>>,
    owner: u32,
}

impl Remote {
    /// Comes to the service at a socket as a new client.
    ///
    /// # Errors
    /// `ServiceGone`; `Told` where whoever is at the other end may not serve, or speaks other versions.
    pub fn open(socket: &Path, waiting: Waiting) -> Result<Remote> {
        Remote::by(Way::named(socket), waiting)
    }

    /// The same by any way.
    pub(crate) fn by(way: Way, waiting: Waiting) -> Result<Remote> {
        Ok(Remote {
            connection: std::mem::ManuallyDrop::new(Connection::open(way, waiting)?),
            owner: std::process::id(),
        })
    }

    /// The clients of the store that this one may hear of: those of its user, or all.
    ///
    /// # Errors
    /// Of the connection.
    pub fn clients(&self) -> Result<Vec<ClientView>> {
        match self.ask(&Request::Clients)?.0 {
            Answer::Clients(clients) => Ok(clients),
            _ => Err(self.strange()),
        }
    }

    fn connection(&self) -> Result<&Arc<Connection>> {
        match self.owner == std::process::id() {
            true => Ok(&self.connection),
            false => Err(Error::Forked {
                store: self.connection.info().path.clone(),
            }),
        }
    }

    fn ask(&self, request: &Request) -> Result<(Answer, Vec<OwnedFd>)> {
        self.connection()?.call(request)
    }

    fn ask_meanings(&self, request: &Request) -> Result<Meanings> {
        match self.ask(request)?.0 {
            Answer::Meanings(meanings) => Ok(meanings),
            _ => Err(self.strange()),
        }
    }

    /// For requests whose answer says only that they are done.
    fn done(&self, request: &Request) -> Result<()> {
        match self.ask(request)?.0 {
            Answer::Done => Ok(()),
            _ => Err(self.strange()),
        }
    }

    fn strange(&self) -> Error {
        gone(self.connection.socket(), "answers what was not asked")
    }

    fn file(&self, puddle: Uuid, descriptor: OwnedFd) -> Result<MediaFile> {
        let directory = self.connection.info().directory();
        received(descriptor, directory.join(format!("puddles/{puddle}")))
    }

    fn puddle(&self, grant: Grant, descriptor: OwnedFd) -> Result<PuddleGrant> {
        Ok(PuddleGrant {
            uuid: grant.uuid,
            address: grant.address,
            size: grant.size,
            kind: grant.kind,
            is_root: grant.is_root,
            file: self.file(grant.uuid, descriptor)?,
        })
    }

    fn pool(&self, request: &Request) -> Result<PoolGrant> {
        match self.ask(request)? {
            (Answer::Pool(pool), mut files) => {
                let file = files.pop().ok_or_else(|| self.strange())?;
                self.open_pool_of(pool, file)
            }
            _ => Err(self.strange()),
        }
    }

    fn open_pool_of(&self, pool: OpenPool, root: OwnedFd) -> Result<PoolGrant> {
        Ok(PoolGrant {
            uuid: pool.uuid,
            name: pool.name,
            engine: pool.engine,
            root: self.puddle(pool.root, root)?,
            others: pool.others,
        })
    }

    fn report(&self, request: &Request) -> Result<RecoveryReport> {
        match self.ask(request)?.0 {
            Answer::Recovery(report) => Ok(report),
            _ => Err(self.strange()),
        }
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            // SAFETY: it is used no more.
            unsafe { std::mem::ManuallyDrop::drop(&mut self.connection) };
        }
    }
}

impl Service for Remote {
    fn info(&self) -> StoreInfo {
        self.connection.info().clone()
    }

    fn recovery(&self) -> Result<RecoveryReport> {
        let mut report = self.report(&Request::Recovery)?;
        report.interrupted = self.interrupted()?;
        Ok(report)
    }

    fn pools(&self) -> Result<Vec<PoolSummary>> {
        match self.ask(&Request::Pools)?.0 {
            Answer::Pools(pools) => Ok(pools),
            _ => Err(self.strange()),
        }
    }

    fn create_pool(&self, name: &str, spec: &PoolSpec) -> Result<PoolGrant> {
        self.pool(&Request::CreatePool {
            pool: random_uuid()?,
            root: random_uuid()?,
            name: name.to_owned(),
            engine: spec.engine,
            root_size: spec.root_puddle_size,
        })
    }

    fn open_pool(&self, name: &str) -> Result<PoolGrant> {
        self.pool(&Request::OpenPool {
            name: name.to_owned(),
        })
    }

    fn open_puddles(&self, pool: Uuid, puddles: &[Uuid]) -> Result<Vec<PuddleGrant>> {
        let puddles = puddles.to_vec();
        let wanted = puddles.len();
        match self.ask(&Request::OpenPuddles { pool, puddles })? {
            (Answer::Puddles(grants), files) if (grants.len(), files.len()) == (wanted, wanted) => {
                let grants = grants.into_iter().zip(files);
                grants
                    .map(|(grant, file)| self.puddle(grant, file))
                    .collect()
            }
            _ => Err(self.strange()),
        }
    }

    fn pool_at(&self, address: u64) -> Result<Option<String>> {
        match self.ask(&Request::PoolAt { address })?.0 {
            Answer::PoolAt(name) => Ok(name),
            _ => Err(self.strange()),
        }
    }

    fn close_pool(&self, pool: Uuid) -> Result<()> {
        self.done(&Request::ClosePool { pool })
    }

    fn remove_pool(&self, name: &str) -> Result<()> {
        // By its own name, too: another one may have the name when the request comes a second time.
        let pools = self.pools()?;
        let pool = pools.iter().find(|pool| pool.name == name);
        let pool = pool.ok_or_else(|| Error::PoolMissing {
            store: self.connection.info().path.clone(),
            name: name.to_owned(),
        })?;
        self.done(&Request::RemovePool {
            pool: pool.uuid,
            name: name.to_owned(),
        })
    }

    fn create_puddle(
        &self,
        owner: PuddleOwner,
        kind: PuddleKind,
        size: u64,
    ) -> Result<PuddleGrant> {
        let request = Request::CreatePuddle {
            puddle: random_uuid()?,
            owner: owner.into(),
            kind,
            size,
        };
        match self.ask(&request)? {
            (Answer::Puddle(grant), mut files) => {
                let file = files.pop().ok_or_else(|| self.strange())?;
                self.puddle(grant, file)
            }
            _ => Err(self.strange()),
        }
    }

    fn reopen_puddle(&self, uuid: Uuid) -> Result<MediaFile> {
        match self.ask(&Request::ReopenPuddle { puddle: uuid })? {
            (Answer::File, mut files) => {
                self.file(uuid, files.pop().ok_or_else(|| self.strange())?)
            }
            _ => Err(self.strange()),
        }
    }

    fn remove_puddle(&self, uuid: Uuid) -> Result<()> {
        self.done(&Request::RemovePuddle { puddle: uuid })
    }

    fn register_log_space(&self, puddle: Uuid) -> Result<()> {
        self.done(&Request::RegisterLogSpace { puddle })
    }

    fn register_type(&self, id: u64, text: &str) -> Result<()> {
        self.done(&Request::RegisterType {
            id,
            text: text.to_owned(),
        })
    }

    fn meanings(&self, pool: Uuid) -> Result<Meanings> {
        let request = Request::Meanings { pool };
        // With one that does not know of it, no types have changed.
        match self.connection()?.knows(&request)? {
            true => self.ask_meanings(&request),
            false => Ok(Meanings::NONE),
        }
    }

    fn change_types(&self, pool: Uuid, old: u64, new: u64) -> Result<Meanings> {
        self.ask_meanings(&Request::ChangeTypes { pool, old, new })
    }

    fn type_text(&self, id: u64) -> Result<Option<String>> {
        match self.ask(&Request::TypeText { id })?.0 {
            Answer::TypeText(text) => Ok(text),
            _ => Err(self.strange()),
        }
    }

    fn types(&self) -> Result<Vec<(u64, String)>> {
        match self.ask(&Request::Types)?.0 {
            Answer::Types(types) => Ok(types),
            _ => Err(self.strange()),
        }
    }

    fn refused_pools(&self) -> Result<Vec<RefusedPool>> {
        match self.ask(&Request::RefusedPools)?.0 {
            Answer::RefusedPools(pools) => Ok(pools),
            _ => Err(self.strange()),
        }
    }

    fn give_up(&self, name: &str) -> Result<RecoveryReport> {
        self.report(&Request::GiveUp {
            name: name.to_owned(),
        })
    }

    fn interrupted(&self) -> Result<Vec<InterruptedClient>> {
        // One that does not know of sections has no client that is in any.
        if !self.connection()?.knows(&Request::Interrupted)? {
            return Ok(Vec::new());
        }
        match self.ask(&Request::Interrupted)?.0 {
            Answer::Interrupted(clients) => Ok(clients),
            _ => Err(self.strange()),
        }
    }

    fn abandon_sections(&self, name: &str) -> Result<Vec<String>> {
        let name = name.to_owned();
        match self.ask(&Request::AbandonSections { name })?.0 {
            Answer::Abandoned(others) => Ok(others),
            _ => Err(self.strange()),
        }
    }

    fn take_over(&self, client: Uuid) -> Result<TakenOver> {
        match self.ask(&Request::TakeOver { client })? {
            (Answer::TakenOver { pools, puddles }, files)
                if files.len() == pools.len() + puddles.len() =>
            {
                let mut files = files.into_iter();
                let pools = pools.into_iter().zip(&mut files);
                let pools = pools.map(|(pool, root)| self.open_pool_of(pool, root));
                let pools = pools.collect::<Result<_>>()?;
                let puddles = puddles.into_iter().zip(files);
                let puddles = puddles.map(|(grant, file)| self.puddle(grant, file));
                Ok(TakenOver::new(pools, puddles.collect::<Result<_>>()?))
            }
            _ => Err(self.strange()),
        }
    }

    fn sections_done(&self, client: Uuid) -> Result<()> {
        self.done(&Request::SectionsDone { client })
    }

    fn accept_quarantined(&self, name: &str) -> Result<()> {
        self.done(&Request::AcceptQuarantined {
            name: name.to_owned(),
        })
    }

    fn retry_quarantined(&self, name: &str) -> Result<RecoveryReport> {
        self.report(&Request::RetryQuarantined {
            name: name.to_owned(),
        })
    }

    fn find_garbage(&self, options: &GarbageOptions) -> Result<Garbage> {
        if options.untyped_hold_pointers {
            let reason =
                "a service takes no words for pointers: name the directory of its store".to_owned();
            return Err(Error::Options { reason });
        }
        let request = Request::FindGarbage {
            pool: options.pool.clone(),
        };
        match self.ask(&request)?.0 {
            Answer::Garbage(garbage) => Ok(garbage),
            _ => Err(self.strange()),
        }
    }

    fn when_lost(&self, tell: Box<dyn FnOnce() + Send>) {
        self.connection.when_lost(tell);
    }

    fn read_pool(&self, name: &str) -> Result<PoolGrant> {
        self.pool(&Request::ReadPool {
            name: name.to_owned(),
        })
    }

    fn look_at_pool(&self, name: &str) -> Result<PoolGrant> {
        self.pool(&Request::LookAtPool {
            name: name.to_owned(),
        })
    }

    fn set_mode(&self, name: &str, mode: u16) -> Result<()> {
        self.done(&Request::SetMode {
            name: name.to_owned(),
            mode,
        })
    }

    fn set_owner(&self, name: &str, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        self.done(&Request::SetOwner {
            name: name.to_owned(),
            uid,
            gid,
        })
    }

    fn revoke_pool(&self, name: &str) -> Result<()> {
        self.done(&Request::RevokePool {
            name: name.to_owned(),
        })
    }

    fn registry(&self) -> Result<Vec<u8>> {
        match self.ask(&Request::Registry)?.0 {
            Answer::Registry(snapshot) => Ok(snapshot),
            _ => Err(self.strange()),
        }
    }

    fn lost_files(&self) -> Result<Vec<LostFile>> {
        match self.ask(&Request::LostFiles)?.0 {
            Answer::LostFiles(files) => Ok(files),
            _ => Err(self.strange()),
        }
    }

    fn stray_files(&self) -> Result<Vec<StrayFile>> {
        match self.ask(&Request::StrayFiles)?.0 {
            Answer::StrayFiles(files) => Ok(files),
            _ => Err(self.strange()),
        }
    }

    fn logs(&self) -> Result<Vec<u8>> {
        match self.ask(&Request::Logs)?.0 {
            Answer::Registry(snapshot) => Ok(snapshot),
            _ => Err(self.strange()),
        }
    }

    fn open_logs(&self, logs: &[Uuid]) -> Result<Vec<MediaFile>> {
        let request = Request::OpenLogs {
            logs: logs.to_vec(),
        };
        match self.ask(&request)? {
            (Answer::Files(paths), files)
                if (paths.len(), files.len()) == (logs.len(), logs.len()) =>
            {
                let files = paths.into_iter().zip(files);
                files.map(|(path, file)| received(file, path)).collect()
            }
            _ => Err(self.strange()),
        }
    }

    fn occupied(&self) -> Result<Vec<AddressRange>> {
        match self.ask(&Request::Occupied)?.0 {
            Answer::Occupied(ranges) => Ok(ranges),
            _ => Err(self.strange()),
        }
    }

    fn avoid(&self, used: &UsedElsewhere) -> Result<()> {
        self.done(&Request::Avoid(used.clone()))
    }

    fn make_way(&self) -> Result<()> {
        self.done(&Request::MakeWay)
    }

    fn finish_moving(&self) -> Result<u64> {
        match self.ask(&Request::FinishMoving)?.0 {
            Answer::Rewritten(puddles) => Ok(puddles),
            _ => Err(self.strange()),
        }
    }

    /// The files of the export are read by this process, and copied to files that the service makes: it follows no path
    /// of ours, and nobody who has the export open has them.
    fn import(&self, export: &Export, options: &ImportOptions) -> Result<ImportReport> {
        let bytes = export.manifest_bytes();
        if bytes.len() > MANIFEST_MAX {
            return Err(Error::ImportRefused {
                place: export.place().to_owned(),
                reason: format!(
                    "its manifest has {} bytes, and a service takes {MANIFEST_MAX} at most; import it to a store of this \
                     program's own",
                    bytes.len()
                ),
            });
        }
        for (number, part) in bytes.chunks(MANIFEST_PART).enumerate() {
            self.done(&Request::Manifest {
                begins: number == 0,
                part: part.to_vec(),
            })?;
        }
        self.done(&Request::BeginImport {
            name: options.name.clone(),
            into: options.into.clone(),
            untyped_hold_no_pointers: options.untyped_hold_no_pointers,
        })?;
        let (mut done, total) = (0, export.manifest().puddles.len() as u64);
        export.each_puddle(|puddle, from| {
            let puddles = vec![puddle];
            match self.ask(&Request::GivePuddles { puddles })? {
                (Answer::Files(paths), mut files) => {
                    let (Some(path), Some(descriptor)) = (paths.into_iter().next(), files.pop())
                    else {
                        return Err(self.strange());
                    };
                    export.copy(puddle, from, &received(descriptor, path)?)?;
                }
                _ => return Err(self.strange()),
            }
            done += 1;
            Progress::tell(&options.progress, Stage::Import, done, total);
            Ok(())
        })?;
        match self.ask(&Request::FinishImport)?.0 {
            Answer::Imported(report) => Ok(ImportReport {
                copied: Some("a service keeps files of its own".to_owned()),
                ..report
            }),
            _ => Err(self.strange()),
        }
    }

    fn show_pool(&self, name: &str, wait: Duration) -> Result<(Vec<u8>, Box<dyn Picture>)> {
        // By a client of its own: others of this program's requests would wait behind it, also those by which it shows
        // a pool of its own to whom it is asking.
        let asker = Remote::open(self.connection.socket(), self.connection.waiting())?;
        let request = Request::ShowPool {
            name: name.to_owned(),
            wait_ms: u64::try_from(wait.as_millis()).unwrap_or(u64::MAX),
        };
        let answer = asker.ask(&request);
        // Should it fail, the service sees the connection end.
        let _ = asker.close();
        match answer? {
            (Answer::Shown { shown, registry }, mut files) => {
                let path = self.info().path.join(format!("{name}, as it is shown"));
                let file = files.pop().ok_or_else(|| self.strange())?;
                let file = received(file, path)?;
                Ok((registry, Box::new(ShownFile::received(file, &shown))))
            }
            _ => Err(self.strange()),
        }
    }

    fn when_asked_to_show(&self, show: Arc<ShowFn>) {
        self.connection.when_asked_to_show(show);
    }

    fn showing_file(&self, asked: Asked) -> Result<MediaFile> {
        let showing = asked.showing;
        match self.ask(&Request::ShowingFile { showing })? {
            (Answer::Files(paths), mut files) => match (paths.into_iter().next(), files.pop()) {
                (Some(path), Some(file)) => received(file, path),
                _ => Err(self.strange()),
            },
            _ => Err(self.strange()),
        }
    }

    fn end_showing(
        &self,
        asked: Asked,
        shown: std::result::Result<&[ShownAt], &str>,
    ) -> Result<()> {
        let shown = match shown {
            Ok(shown) if shown.len() > SHOWN_MAX => Err(format!(
                "it has {} puddles, and {SHOWN_MAX} at most can be shown",
                shown.len()
            )),
            Ok(shown) => Ok(shown.to_vec()),
            Err(problem) => Err(problem.to_owned()),
        };
        let showing = asked.showing;
        self.done(&Request::EndShowing { showing, shown })
    }

    fn is_asked_to_leave(&self) -> bool {
        self.connection.is_asked_to_leave()
    }

    fn close(&self) -> Result<()> {
        let closed = match self.done(&Request::Close) {
            // It has ended before.
            Err(Error::ClientUnknown { .. }) => Ok(()),
            closed => closed,
        };
        if self.owner == std::process::id() {
            self.connection.end();
        }
        closed
    }
}
