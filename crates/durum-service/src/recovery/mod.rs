//! Recovery: what clients that did not end in order left under way is undone or completed.
//!
//! [`decide`] reads all logs ([`logs`], [`records`], [`mod@twin`]) and makes a [`plan`], without writing anything;
//! [`apply`] brings the home locations ([`home`]) into the state that the plans ask for and makes them durable. The
//! service then retires the old logs in one registry commit. The logs themselves are never written, so a crash at any
//! point finds them whole and the next opener does the same work again, with the same result.
//!
//! What only the code of the client could complete ([`sections`]) is read, and left to it: the client stays then, with
//! the pools that it could write.
//!
//! What cannot be written now, because a file of its pool is missing or damaged ([`obstacle`]), stays in the logs
//! ([`refused`]): the service keeps the client, with what was decided, until the file is back or the part is given up.
//!
//! Logs, records and the files of pools are bytes that clients write, and clients may be hostile. What they say is held
//! against the registry, which no client can write, and whatever is wrong with it costs the pools of its client alone:
//! errors of the store are of its registry and of the system ([`obstacle`]).
//!
//! The work is bounded by the logs: no pool is walked. Memory and time grow with the bytes that the files of one client
//! hold, and with no number in them ([`logs`], [`records`]).

mod apply;
mod decide;
mod home;
mod logs;
mod obstacle;
mod plan;
mod records;
mod refused;
mod sections;
mod twin;
pub(crate) mod workers;
mod write;

pub(crate) use self::apply::{apply, sync_logs};
pub(crate) use self::decide::plan_client;
pub(crate) use self::home::Access;
pub(crate) use self::plan::ClientPlan;
pub(crate) use self::refused::{Part, Refusal, RefusedPools, ensure_nothing_kept};
pub(crate) use self::sections::{
    Interrupted, being_completed, ensure_not_interrupted, in_pool, interruption, is_of_sections,
};
pub(crate) use self::twin::plan_twin;
pub(crate) use self::write::HomeWrite;
