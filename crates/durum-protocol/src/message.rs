//! What is asked and answered. On the wire it is [postcard](https://postcard.jamesmunns.com/wire-format).
//!
//! The order of variants and fields is the protocol's: a change of it needs another [`VERSION`]. A new request stands
//! behind all others, and needs a feature ([`Request::needs`]): an older service does not know it. Names of puddles and
//! pools that a request makes are the client's choice, so that a request that is sent again, because its answer was
//! lost, is done once.

use std::path::PathBuf;

use durum_format::puddle::PuddleKind;
use durum_format::types::Meanings;
use durum_format::{EngineKind, Uuid};
use durum_service::{
    AddressRange, Garbage, ImportReport, InterruptedClient, LostFile, PoolSummary, PuddleOwner,
    PuddlePlace, RecoveryReport, RefusedPool, ShownAt, StoreInfo, StrayFile, UsedElsewhere,
};
use serde::{Deserialize, Serialize};
use strum::IntoStaticStr;

use crate::failure::Failure;
use crate::frame::FrameError;

/// The version of the messages; the only one so far.
pub const VERSION: u32 = 1;

/// The service shows what is not in order: [`Request::LookAtPool`], [`Request::StrayFiles`],
/// [`Request::Logs`], [`Request::OpenLogs`].
pub const LOOK: u64 = 1;

/// The service moves data that is in the way: [`Request::Occupied`], [`Request::Avoid`], [`Request::MakeWay`],
/// [`Request::FinishMoving`].
pub const MOVE: u64 = 2;

/// The service imports pools: [`Request::Manifest`], [`Request::BeginImport`], [`Request::GivePuddles`],
/// [`Request::FinishImport`].
pub const IMPORT: u64 = 4;

/// The most bytes of a manifest that a client sends: some fifty thousand puddles.
pub const MANIFEST_MAX: usize = 16 << 20;

/// The service tells whose an address is: [`Request::PoolAt`].
pub const FOLLOW: u64 = 8;

/// The client shows a pool that it writes, where it is asked to; the service asks: [`Request::ShowPool`],
/// [`Request::ShowingFile`], [`Request::EndShowing`], [`Note::Show`].
pub const SHOW: u64 = 16;

/// Sections that were interrupted: [`Request::Interrupted`], [`Request::AbandonSections`], [`Request::TakeOver`],
/// [`Request::SectionsDone`]; puddles of sections, and the failure that names them.
pub const SECTIONS: u64 = 32;

/// The service keeps code that completes sections: puddles of code.
pub const CODE: u64 = 64;

/// Types of a pool change: [`Request::Meanings`], [`Request::ChangeTypes`]. A client without it opens no pool in which
/// they did.
pub const TYPES: u64 = 128;

/// All features of this version that there are.
pub const FEATURES: u64 = LOOK | MOVE | IMPORT | FOLLOW | SHOW | SECTIONS | CODE | TYPES;

/// The words with which a client begins.
pub const GREETING: [u8; 8] = *b"durum-cl";

/// The first message of a client. It never changes its form: an older or newer service answers it, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`GREETING`].
    pub greeting: [u8; 8],
    /// The versions that the client speaks: from.
    pub from: u32,
    /// And up to.
    pub to: u32,
    /// What the client can do beside: bits of [`FEATURES`].
    pub features: u64,
    /// The client that it is already, if it comes again.
    pub client: Option<Uuid>,
}

/// The answer to a hello. The descriptor of the liveness file comes with it, for a new client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Welcome {
    /// The version that both speak.
    pub version: u32,
    /// Of what the client offered, what the service can do, too.
    pub features: u64,
    /// What the store is, and who the client is.
    pub info: StoreInfo,
}

/// What a client asks. See the method of [`Service`](durum_service::Service) of the same name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, IntoStaticStr)]
#[strum(serialize_all = "snake_case")] // How metrics name it.
#[allow(missing_docs)] // What each means is told there.
pub enum Request {
    /// Nothing; the service answers.
    Ping,
    /// The client holds its lock.
    Ready,
    Recovery,
    Pools,
    CreatePool {
        pool: Uuid,
        root: Uuid,
        name: String,
        engine: EngineKind,
        root_size: u64,
    },
    OpenPool {
        name: String,
    },
    OpenPuddles {
        pool: Uuid,
        puddles: Vec<Uuid>,
    },
    ClosePool {
        pool: Uuid,
    },
    /// The pool of that name, if it is this one.
    RemovePool {
        pool: Uuid,
        name: String,
    },
    CreatePuddle {
        puddle: Uuid,
        owner: Owner,
        kind: PuddleKind,
        size: u64,
    },
    ReopenPuddle {
        puddle: Uuid,
    },
    RemovePuddle {
        puddle: Uuid,
    },
    RegisterLogSpace {
        puddle: Uuid,
    },
    RegisterType {
        id: u64,
        text: String,
    },
    TypeText {
        id: u64,
    },
    Types,
    RefusedPools,
    GiveUp {
        name: String,
    },
    AcceptQuarantined {
        name: String,
    },
    RetryQuarantined {
        name: String,
    },
    FindGarbage {
        pool: Option<String>,
    },
    Close,
    ReadPool {
        name: String,
    },
    Registry,
    LostFiles,
    SetMode {
        name: String,
        mode: u16,
    },
    SetOwner {
        name: String,
        uid: Option<u32>,
        gid: Option<u32>,
    },
    RevokePool {
        name: String,
    },
    /// Who uses the store.
    Clients,
    /// Asks a client to leave. The answer comes when it has, or after that time.
    AskToLeave {
        client: Uuid,
        wait_ms: u64,
    },
    LookAtPool {
        name: String,
    },
    StrayFiles,
    Logs,
    OpenLogs {
        logs: Vec<Uuid>,
    },
    Occupied,
    Avoid(UsedElsewhere),
    MakeWay,
    FinishMoving,
    /// The next part of the manifest of what is to be imported; one that `begins` forgets what came before.
    Manifest {
        begins: bool,
        part: Vec<u8>,
    },
    /// To import what the manifest tells of.
    BeginImport {
        /// The new name of the pool that was asked for.
        name: Option<String>,
        /// The pool that its puddles join.
        into: Option<String>,
        untyped_hold_no_pointers: bool,
    },
    /// New files for these puddles of the export, for the client to fill.
    GivePuddles {
        puddles: Vec<Uuid>,
    },
    /// All files are filled.
    FinishImport,
    PoolAt {
        address: u64,
    },
    /// To see a pool that another client writes. The answer comes when that one has shown it, or after that time.
    ShowPool {
        name: String,
        wait_ms: u64,
    },
    /// A file for what the puddles of a pool held, which the client fills. It was asked by a note.
    ShowingFile {
        showing: Uuid,
    },
    /// All is in that file; or it cannot be shown, and why.
    EndShowing {
        showing: Uuid,
        shown: Result<Vec<ShownAt>, String>,
    },
    Interrupted,
    AbandonSections {
        name: String,
    },
    /// To complete what a client has left that is gone.
    TakeOver {
        client: Uuid,
    },
    SectionsDone {
        client: Uuid,
    },
    Meanings {
        pool: Uuid,
    },
    ChangeTypes {
        pool: Uuid,
        old: u64,
        new: u64,
    },
}

impl Request {
    /// The features without which a service does not know this request.
    pub fn needs(&self) -> u64 {
        match self {
            Request::LookAtPool { .. }
            | Request::StrayFiles
            | Request::Logs
            | Request::OpenLogs { .. } => LOOK,
            Request::Occupied | Request::Avoid(_) | Request::MakeWay | Request::FinishMoving => {
                MOVE
            }
            Request::Manifest { .. }
            | Request::BeginImport { .. }
            | Request::GivePuddles { .. }
            | Request::FinishImport => IMPORT,
            Request::PoolAt { .. } => FOLLOW,
            Request::ShowPool { .. } | Request::ShowingFile { .. } | Request::EndShowing { .. } => {
                SHOW
            }
            Request::Interrupted
            | Request::AbandonSections { .. }
            | Request::TakeOver { .. }
            | Request::SectionsDone { .. }
            | Request::CreatePuddle {
                kind: PuddleKind::Sections,
                ..
            } => SECTIONS,
            Request::CreatePuddle {
                kind: PuddleKind::Code,
                ..
            } => CODE,
            Request::Meanings { .. } | Request::ChangeTypes { .. } => TYPES,
            _ => 0,
        }
    }
}

/// Who owns a puddle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Owner {
    /// A pool that is open.
    Pool(Uuid),
    /// The client.
    Client,
}

impl From<PuddleOwner> for Owner {
    fn from(owner: PuddleOwner) -> Owner {
        match owner {
            PuddleOwner::Pool(pool) => Owner::Pool(pool),
            PuddleOwner::Client => Owner::Client,
        }
    }
}

impl From<Owner> for PuddleOwner {
    fn from(owner: Owner) -> PuddleOwner {
        match owner {
            Owner::Pool(pool) => PuddleOwner::Pool(pool),
            Owner::Client => PuddleOwner::Client,
        }
    }
}

/// A puddle that the client may map. Its descriptor comes with the answer, in the order of the puddles.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    /// The puddle.
    pub uuid: Uuid,
    /// Where it is mapped, in every process.
    pub address: u64,
    /// Its size in bytes, header included.
    pub size: u64,
    /// What it holds.
    pub kind: PuddleKind,
    /// Whether it is the root puddle of its pool.
    pub is_root: bool,
}

/// A pool that the client may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenPool {
    /// The pool.
    pub uuid: Uuid,
    /// Its name.
    pub name: String,
    /// The engine that runs its transactions.
    pub engine: EngineKind,
    /// The puddle that holds its root object. Its descriptor comes beside.
    pub root: Grant,
    /// Where its other puddles lie.
    pub others: Vec<PuddlePlace>,
}

/// A client, as a list shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientView {
    /// The client.
    pub client: Uuid,
    /// Its process.
    pub pid: u32,
    /// Its user; nobody knows that of one that has not come again since the service was started.
    pub uid: Option<u32>,
    /// Whether it has a connection.
    pub is_connected: bool,
    /// The names of the pools that it has open.
    pub holds: Vec<String>,
    /// What it has asked and was not answered yet, in words.
    pub waits_for: Option<String>,
    /// For how long it waits.
    pub waits_ms: u64,
}

/// What the service answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[allow(missing_docs)] // Each is the answer to the requests of its name.
pub enum Answer {
    Done,
    Failed(Failure),
    Welcome(Welcome),
    /// The versions that the service speaks: none that the client does.
    OtherVersion {
        from: u32,
        to: u32,
    },
    Recovery(RecoveryReport),
    Pools(Vec<PoolSummary>),
    Pool(OpenPool),
    Puddle(Grant),
    Puddles(Vec<Grant>),
    File,
    TypeText(Option<String>),
    Types(Vec<(u64, String)>),
    RefusedPools(Vec<RefusedPool>),
    Garbage(Garbage),
    Registry(Vec<u8>),
    LostFiles(Vec<LostFile>),
    Clients(Vec<ClientView>),
    HasLeft(bool),
    StrayFiles(Vec<StrayFile>),
    /// The files whose descriptors come beside.
    Files(Vec<PathBuf>),
    Occupied(Vec<AddressRange>),
    /// So many puddles were rewritten.
    Rewritten(u64),
    Imported(ImportReport),
    /// The name of the pool.
    PoolAt(Option<String>),
    /// Where the puddles of a pool are in the file whose descriptor comes beside, and what the registry said then, as
    /// for [`Answer::Registry`].
    Shown {
        shown: Vec<ShownAt>,
        registry: Vec<u8>,
    },
    Interrupted(Vec<InterruptedClient>),
    /// The names of other pools that wait as before.
    Abandoned(Vec<String>),
    /// The descriptors of the pools' roots come beside, and then those of the puddles of sections.
    TakenOver {
        pools: Vec<OpenPool>,
        puddles: Vec<Grant>,
    },
    /// Those that ids have now.
    Meanings(Meanings),
}

impl Answer {
    /// As a client gets it with which these features were agreed.
    #[must_use]
    pub fn known_to(self, features: u64) -> Answer {
        match self {
            Answer::Failed(failure @ Failure::PoolInterrupted { .. })
                if features & SECTIONS == 0 =>
            {
                Answer::Failed(failure.unnamed())
            }
            known => known,
        }
    }
}

/// What the service tells without being asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Note {
    /// Somebody may have taken the client for gone: it is to come again, and to take its lock again.
    AreYouThere,
    /// The service ends. What is mapped stays; it gives nothing new.
    Ends,
    /// Somebody who may end the client's process asks it to close its pools and to leave.
    Leave,
    /// Somebody wants to see a pool that the client writes.
    Show {
        /// What requests about it name.
        showing: Uuid,
        /// The pool.
        pool: Uuid,
    },
}

/// A message as bytes.
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Nothing here has a length or a map that postcard cannot write. A path that is no UTF-8 could not be written: the
    // service serves no store at one.
    postcard::to_allocvec(message).unwrap_or_default()
}

/// Reads a message; all of the bytes have to be one.
///
/// # Errors
/// [`FrameError::Message`].
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, FrameError> {
    let refused = |problem: String| FrameError::Message(problem);
    let (message, rest) =
        postcard::take_from_bytes(bytes).map_err(|error| refused(error.to_string()))?;
    match rest.len() {
        0 => Ok(message),
        more => Err(refused(format!("{more} bytes are left over"))),
    }
}
