//! `durum demo`: counts words while being killed, and proves that no count was lost or doubled.
//!
//! [`killer`] is the process that the user starts: it kills [`worker`], recovers the store by the service alone, and
//! starts the next one ([`process`]); or has a service recover it that it starts ([`daemon`]). [`map`] is the
//! persistent hash map, [`pool`] its pool's root, [`text`] what a word is, [`verify`] the comparison.

mod daemon;
pub(crate) mod interrupt;
mod killer;
mod map;
mod pool;
mod process;
mod random;
mod report;
mod text;
mod verify;
mod worker;

use std::io::Write;

use serde_json::json;

use crate::args::Demo;
use crate::failure::Failure;
use crate::output::{self, count, grouped};

pub(crate) fn run(options: &Demo, out: &mut dyn Write) -> Result<(), Failure> {
    match &options.store {
        Some(store) if options.worker_only => worker::run(options, store, out),
        Some(store) if options.verify_only => {
            let verdict = verify::prefix(store)?.into_result()?;
            if verdict.counted < options.at_least {
                return Err(Failure::Damaged(format!(
                    "{} words are counted, but {} were reported as durable",
                    verdict.counted, options.at_least
                )));
            }
            if options.json {
                let value = json!({ "counted": verdict.counted, "different": verdict.different, "equal": true });
                return Ok(output::json(out, &value)?);
            }
            writeln!(
                out,
                "{} counted, {} different: equal to a count of the same part of the text in plain memory",
                count(verdict.counted, "word"),
                grouped(verdict.different)
            )?;
            Ok(())
        }
        _ => killer::run(options, out),
    }
}
