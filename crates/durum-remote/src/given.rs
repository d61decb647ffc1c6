//! The client of code that only completes sections: what it asks is what [`completing`](crate::completing) answers, and
//! all else is refused here, so that such code has nothing that leads to it.

use std::path::Path;

use durum_format::Uuid;
use durum_format::puddle::PuddleKind;
use durum_format::types::Meanings;
use durum_persist::file::MediaFile;
use durum_service::{
    AddressRange, Error, Export, Garbage, GarbageOptions, ImportOptions, ImportReport,
    InterruptedClient, LostFile, PoolGrant, PoolSpec, PoolSummary, PuddleGrant, PuddleOwner,
    RecoveryReport, RefusedPool, Result, Service, StoreInfo, StrayFile, TakenOver, UsedElsewhere,
};

use crate::answers::refused;
use crate::connection::{Waiting, Way, gone};
use crate::remote::Remote;
use crate::socket::Socket;

/// A client by a connection that was made for this process: when it ends, the client has, and nobody comes again.
#[derive(Debug)]
pub struct Given(Remote);

impl Given {
    /// Comes to the service at the other end, as a new client.
    ///
    /// # Errors
    /// `ServiceGone`; `Told` where the service speaks other versions.
    pub fn over(socket: Socket, waiting: Waiting) -> Result<Given> {
        let limit = Some(waiting.answer);
        let set = socket.wait_at_most(limit, limit);
        set.map_err(|error| gone(Path::new("the socket that was given"), &error.to_string()))?;
        Ok(Given(Remote::by(Way::given(socket), waiting)?))
    }
}

/// Methods that only pass on.
macro_rules! asked {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> $result:ty;)*) => {
        $(fn $name(&self $(, $argument: $type)*) -> $result {
            self.0.$name($($argument),*)
        })*
    };
}

/// Methods whose requests nobody would answer.
macro_rules! not_asked {
    ($(fn $name:ident(&self $(, $argument:ident: $type:ty)*) -> Result<$result:ty>;)*) => {
        $(fn $name(&self $(, _: $type)*) -> Result<$result> {
            Err(not_asked())
        })*
    };
}

fn not_asked() -> Error {
    refused("code that only completes sections does not ask for that")
}

impl Service for Given {
    asked! {
        fn info(&self) -> StoreInfo;
        fn interrupted(&self) -> Result<Vec<InterruptedClient>>;
        fn take_over(&self, client: Uuid) -> Result<TakenOver>;
        fn sections_done(&self, client: Uuid) -> Result<()>;
        fn open_puddles(&self, pool: Uuid, puddles: &[Uuid]) -> Result<Vec<PuddleGrant>>;
        fn close_pool(&self, pool: Uuid) -> Result<()>;
        fn create_puddle(&self, owner: PuddleOwner, kind: PuddleKind, size: u64) -> Result<PuddleGrant>;
        fn reopen_puddle(&self, uuid: Uuid) -> Result<MediaFile>;
        fn remove_puddle(&self, uuid: Uuid) -> Result<()>;
        fn register_log_space(&self, puddle: Uuid) -> Result<()>;
        fn register_type(&self, id: u64, text: &str) -> Result<()>;
        fn meanings(&self, pool: Uuid) -> Result<Meanings>;
        fn type_text(&self, id: u64) -> Result<Option<String>>;
        fn when_lost(&self, tell: Box<dyn FnOnce() + Send>) -> ();
        fn close(&self) -> Result<()>;
    }

    not_asked! {
        fn recovery(&self) -> Result<RecoveryReport>;
        fn pools(&self) -> Result<Vec<PoolSummary>>;
        fn create_pool(&self, name: &str, spec: &PoolSpec) -> Result<PoolGrant>;
        fn open_pool(&self, name: &str) -> Result<PoolGrant>;
        fn read_pool(&self, name: &str) -> Result<PoolGrant>;
        fn look_at_pool(&self, name: &str) -> Result<PoolGrant>;
        fn registry(&self) -> Result<Vec<u8>>;
        fn lost_files(&self) -> Result<Vec<LostFile>>;
        fn stray_files(&self) -> Result<Vec<StrayFile>>;
        fn logs(&self) -> Result<Vec<u8>>;
        fn open_logs(&self, logs: &[Uuid]) -> Result<Vec<MediaFile>>;
        fn pool_at(&self, address: u64) -> Result<Option<String>>;
        fn remove_pool(&self, name: &str) -> Result<()>;
        fn change_types(&self, pool: Uuid, old: u64, new: u64) -> Result<Meanings>;
        fn types(&self) -> Result<Vec<(u64, String)>>;
        fn refused_pools(&self) -> Result<Vec<RefusedPool>>;
        fn give_up(&self, name: &str) -> Result<RecoveryReport>;
        fn accept_quarantined(&self, name: &str) -> Result<()>;
        fn retry_quarantined(&self, name: &str) -> Result<RecoveryReport>;
        fn abandon_sections(&self, name: &str) -> Result<Vec<String>>;
        fn find_garbage(&self, options: &GarbageOptions) -> Result<Garbage>;
        fn occupied(&self) -> Result<Vec<AddressRange>>;
        fn avoid(&self, used: &UsedElsewhere) -> Result<()>;
        fn make_way(&self) -> Result<()>;
        fn finish_moving(&self) -> Result<u64>;
        fn import(&self, export: &Export, options: &ImportOptions) -> Result<ImportReport>;
        fn set_mode(&self, name: &str, mode: u16) -> Result<()>;
        fn set_owner(&self, name: &str, uid: Option<u32>, gid: Option<u32>) -> Result<()>;
        fn revoke_pool(&self, name: &str) -> Result<()>;
    }
}
