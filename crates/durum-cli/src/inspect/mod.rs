//! stub
use crate::args::Inspect;
use crate::failure::Failure;
use std::io::Write;
pub(crate) fn run(_options: &Inspect, _out: &mut dyn Write) -> Result<(), Failure> {
    Ok(())
}
