//! `durum recover --complete-sections` and `--complete-with`: what programs have left in sections is completed by their
//! code, without them.

use std::fmt::Display;
use std::path::Path;

use durum_remote::completing;
use durum_runner::{Bounds, Code, Hash, Limits};
use durum_service::{Embedded, Error, InterruptedClient, Service, ensure_code_runs_here};

use crate::failure::Failure;
use crate::output::{count, list};

/// The most bytes that code has.
const CODE_MAX: u64 = 64 << 20;

/// Completes what all clients have left that are gone, by the code in this file, or by what each one has deposited.
/// Whom it has completed; the first that it could not ends it.
pub(crate) fn all(
    store: &Embedded,
    file: Option<&Path>,
) -> Result<Vec<InterruptedClient>, Failure> {
    let given = file.map(read).transpose()?;
    let bounds =
        Bounds::of_this_kernel().map_err(|missing| Failure::Refused(missing.to_string()))?;
    let left = store.interrupted()?;
    for client in &left {
        let deposited = match given {
            Some(_) => None,
            None => Some(deposited(store, client)?),
        };
        let code = given.as_ref().or(deposited.as_ref());
        let (host, limits) = (store.host(), Limits::default());
        let completed = code.map_or(Ok(()), |code| {
            completing::complete(host, client.client, code, &bounds, &limits)
        });
        completed.map_err(|error| not_completed(client, &error))?;
    }
    Ok(left)
}

fn deposited(store: &Embedded, client: &InterruptedClient) -> Result<Code, Failure> {
    let bytes = match store.host().code_of(client.client) {
        Err(lacks @ Error::ProcessorLacks { .. }) => return Err(not_completed(client, &lacks)),
        bytes => bytes?,
    };
    let Some(bytes) = bytes else {
        return Err(not_completed(client, &"its program has deposited no code"));
    };
    let code = Code::copied(&bytes, Hash::of(&bytes));
    code.map_err(|error| not_completed(client, &error))
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

fn not_completed(client: &InterruptedClient, reason: &dyn Display) -> Failure {
    Failure::Damaged(format!(
        "what sections have left in {} is as it was: {reason}; run the program that was interrupted, or have code that was linked beside \
         it complete it: `--complete-with`",
        pools(client)
    ))
}

fn pools(client: &InterruptedClient) -> String {
    list(client.pools.iter().map(|pool| format!("\"{pool}\"")))
}
