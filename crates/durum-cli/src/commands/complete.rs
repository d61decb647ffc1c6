//! `durum recover --complete-with`: what programs have left in sections is completed by their code, without them.

use std::path::Path;

use durum_remote::completing::{self, NotCompleted};
use durum_runner::{Bounds, Code, Hash, Limits};
use durum_service::{Embedded, InterruptedClient, Service};

use crate::failure::Failure;
use crate::output::{count, list};

/// The most bytes that code has.
const CODE_MAX: u64 = 64 << 20;

/// Completes what all clients have left that are gone. Whom it has completed; the first that it could not ends it.
pub(crate) fn all(store: &Embedded, file: &Path) -> Result<Vec<InterruptedClient>, Failure> {
    let code = read(file)?;
    let bounds =
        Bounds::of_this_kernel().map_err(|missing| Failure::Refused(missing.to_string()))?;
    let left = store.interrupted()?;
    for client in &left {
        let (host, limits) = (store.host(), Limits::default());
        let completed = completing::complete(host, client.client, &code, &bounds, &limits);
        completed.map_err(|error| not_completed(client, file, error))?;
    }
    Ok(left)
}

/// In words.
pub(crate) fn told(client: &InterruptedClient) -> String {
    format!(
        "completed  {}: {}",
        list(client.pools.iter().map(|pool| format!("\"{pool}\""))),
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
    Code::copied(&bytes, Hash::of(&bytes)).map_err(|error| unreadable(&error))
}

fn not_completed(client: &InterruptedClient, file: &Path, error: NotCompleted) -> Failure {
    match error {
        NotCompleted::Store(error) => error.into(),
        error => Failure::Damaged(format!(
            "what sections have left in {} is as it was: {error}; {} has to be of the program that was interrupted, or run that",
            list(client.pools.iter().map(|pool| format!("\"{pool}\""))),
            file.display()
        )),
    }
}
