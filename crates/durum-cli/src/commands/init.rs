//! `durum init`: makes an empty store.

use std::io::Write;
use std::path::Path;

use durum_persist::domain;
use durum_service::{CreateOptions, Embedded, Service};
use serde_json::json;

use crate::args::Init;
use crate::failure::Failure;
use crate::output::{self, domain_name, survives};
use crate::place::Place;

pub(crate) fn run(options: &Init, out: &mut dyn Write) -> Result<(), Failure> {
    let place = Place::of(&options.path);
    let path = place.directory("make another store")?;
    if let Some(wanted) = &options.domain {
        check_domain(wanted, path)?;
    }
    let mut create = CreateOptions::default();
    if let Some(base) = options.base {
        create.base = base;
    }
    if let Some(space) = options.space {
        create.space_size = space;
    }
    let store = Embedded::create(path, &create)?;
    let info = store.info();
    store.close()?;
    if options.json {
        let value = json!({
            "store": info.path,
            "uuid": info.uuid.to_string(),
            "domain": domain_name(info.domain),
            "base": format!("{:#x}", info.base),
            "space_bytes": info.space_size,
        });
        output::json(out, &value)?;
    } else {
        let survives = survives(info.domain);
        writeln!(out, "made an empty store at {}", info.path.display())?;
        writeln!(out, "domain {}, {survives}", domain_name(info.domain))?;
    }
    Ok(())
}

/// The domain follows from the file system; what can be asked for is that it is the expected one.
fn check_domain(wanted: &str, path: &Path) -> Result<(), Failure> {
    if !["dax", "dram", "file"].contains(&wanted) {
        return Err(Failure::Refused(format!(
            "--domain {wanted}: there is no such domain; choose dax, dram or file"
        )));
    }
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let found = domain::detect(parent).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Failure::Refused(format!(
            "{}: the directory for it, {dir}, is missing; make that first: `mkdir -p {dir}`",
            path.display(),
            dir = parent.display()
        )),
        _ => Failure::file("finding the domain", parent, error),
    })?;
    if domain_name(found) == wanted {
        return Ok(());
    }
    Err(Failure::Refused(format!(
        "{}: the domain here is {} ({}), not {wanted}; choose another file system{}",
        parent.display(),
        domain_name(found),
        survives(found),
        if wanted == "dax" {
            ", mounted with -o dax"
        } else {
            ""
        },
    )))
}
