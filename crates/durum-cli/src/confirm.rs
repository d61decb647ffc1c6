//! A question before something is lost.

use std::io::{BufRead, IsTerminal};

use crate::failure::Failure;

/// Asks, unless the answer was given. Where nobody can answer, or the answer is no, that is a refusal, which `refusal`
/// tells.
pub(crate) fn confirm(is_sure: bool, question: &str, refusal: &str) -> Result<(), Failure> {
    if is_sure {
        return Ok(());
    }
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Failure::Refused(format!(
            "{question} Nobody is here to answer; add --yes"
        )));
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    input
        .lock()
        .read_line(&mut answer)
        .map_err(|error| Failure::system("reading the answer", error))?;
    match answer.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(Failure::Refused(refusal.into())),
    }
}
