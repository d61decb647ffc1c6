//! Recovery: what clients that did not end in order left under way is undone or completed.
//!
//! [`plan`] reads all logs ([`logs`], [`records`]) and decides, without writing anything; [`apply`] brings the home locations
//! ([`home`]) into the state that the plans ask for and makes them durable. The service then retires the old logs in one
//! registry commit. The logs themselves are never written, so a crash at any point finds them whole and the next
//! opener does the same work again, with the same result.
//!
//! The work is bounded by the logs: no pool is walked.

pub(crate) mod apply;
mod home;
mod logs;
pub(crate) mod plan;
mod records;
mod twin;
mod workers;
mod write;

pub(crate) use self::plan::{ClientPlan, plan_client};
pub(crate) use self::write::HomeWrite;
