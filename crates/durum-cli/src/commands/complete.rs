//! `durum recover --complete-sections` and `--complete-with`: what programs have left in sections is completed by their
//! code, without them.

use std::path::Path;

use durum_format::code::CODE_MAX;
use durum_remote::completing::{self, NotCompleted};
use durum_runner::{Code, Hash, Here, Limits};
use durum_service::{Embedded, InterruptedClient, Service, ensure_code_runs_here};

use crate::failure::Failure;
use crate::output::{count, list};

/// Whose sections were completed, and of whom they were not: a failure in words for each.
#[derive(Default)]
pub(crate) struct Completed {
    pub(crate) clients: Vec<InterruptedClient>,
    pub(crate) failures: Vec<String>,
}

/// Completes what all clients have left that are gone, by the code in this file, or by what each one has deposited. One
/// whose code fails keeps no other one from being completed.
///
/// # Errors
/// Where there is no code that could be run, or nothing that could run it.
pub(crate) fn all(
    store: &Embedded,
    file: Option<&Path>,
    limits: &Limits,
) -> Result<Completed, Failure> {
    let given = file.map(read).transpose()?;
    let runner = Here::new().map_err(|missing| Failure::Refused(missing.to_string()))?;
    let mut done = Completed::default();
    for client in store.interrupted()? {
        let (host, of) = (store.host(), client.client);
        let completed = match &given {
            Some(code) => completing::complete_with(code, host, of, &runner, limits),
            None => completing::complete(host, of, &runner, limits),
        };
        match completed {
            Ok(()) => done.clients.push(client),
            Err(error) => done.failures.push(not_completed(&client, &error)),
        }
    }
    Ok(done)
}

/// In words.
pub(crate) fn told(client: &InterruptedClient) -> String {
    format!(
        "completed  {}: {}",
        pools(client),
        count(client.sections, "section")
    )
}

fn read(file: &Path) -> Result<Code, Failure> {
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::Unreadable(format!("{}: {error}", file.display()));
    let length = std::fs::metadata(file)
        .map_err(|error| unreadable(&error))?
        .len();
    if length > CODE_MAX {
        return Err(unreadable(&format_args!(
            "it has {length} bytes, and code that completes sections is smaller: name what `durumcc -fdurable-code` has made"
        )));
    }
    let bytes = std::fs::read(file).map_err(|error| unreadable(&error))?;
    ensure_code_runs_here(&bytes, file)?;
    Code::copied(&bytes, Hash::of(&bytes)).map_err(|error| unreadable(&error))
}

fn not_completed(client: &InterruptedClient, reason: &NotCompleted) -> String {
    let cure = match reason.more() {
        Some(option) => format!("let it have more: `{option}`"),
        None => {
            let cure = "run the program that was interrupted, or have code that was linked beside it complete it";
            format!("{cure}: `--complete-with`")
        }
    };
    format!(
        "what sections have left in {} is as it was: {reason}; {cure}",
        pools(client)
    )
}

fn pools(client: &InterruptedClient) -> String {
    list(client.pools.iter().map(|pool| format!("\"{pool}\"")))
}
