//! Exports that are taken into a store (Puddles, EuroSys'24, §3.5): under new names, at the addresses at which they
//! were where these are free.
//!
//! Nothing is translated and nothing looked at but the manifest, sizes and headers: each puddle is when somebody first
//! needs it, as after a move (`docs/internals/relocation.md`).

use std::cmp::Ordering;
use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use durum_format::Uuid;
use durum_format::export::{self, BEGINNING_BYTES, FILE_NAME, Manifest};
use durum_format::puddle::{self, ENCODED_SIZE, PuddleHeader};
use durum_persist::beneath::Directory;
use durum_persist::file::MediaFile;
use serde::{Deserialize, Serialize};

use crate::ahead::{FEW, each_ahead};
use crate::archive;
use crate::directory::parent;
use crate::error::{Error, Result};
use crate::model::ProgressFn;
use crate::names;
use crate::reading::{self, Role};
use crate::sparse;
use crate::sums::ensure_sum;

const CURE: &str = "make the export again";
/// Files of an export that are open at once: those that wait, and one on either side.
const FILES_AHEAD: usize = FEW + 2;
const ROLE: Role = Role {
    structure: "a file of the export",
    cure: CURE,
};

/// How an export is imported.
#[derive(Clone, Default)]
pub struct ImportOptions {
    /// The name of the pool; that which it was exported with when absent. Pools that came with it keep theirs.
    pub name: Option<String>,
    /// The puddles join this pool, which must be of the same engine and not open, and no pool is made. Its own root
    /// stays what it is; the other one becomes an object, of which the report tells where it is.
    pub into: Option<String>,
    /// The export's files stay where they are, and the store gets copies. Without it they become the store's, if they
    /// are this user's alone and on the same file system: then the export is gone.
    pub copies: bool,
    /// Compares all contents with their sums now, and not when each puddle is first opened.
    pub verifies: bool,
    /// Objects of unknown type hold no pointers. Without it, an export that has some is refused where it cannot have
    /// the addresses that it had.
    pub untyped_hold_no_pointers: bool,
    /// Called as the import goes on.
    pub progress: Option<Arc<ProgressFn>>,
}

impl fmt::Debug for ImportOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportOptions")
            .field("name", &self.name)
            .field("into", &self.into)
            .field("copies", &self.copies)
            .field("verifies", &self.verifies)
            .field("untyped_hold_no_pointers", &self.untyped_hold_no_pointers)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// What was imported.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ImportReport {
    /// The names of the pools, that which was asked for first.
    pub pools: Vec<String>,
    /// Puddles.
    pub puddles: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Where the root object is of a pool whose puddles have joined another one. Until something leads there it is
    /// garbage, with all that it leads to.
    pub root: Option<u64>,
    /// Puddles that have other addresses than they had: pointers to them are rewritten when each puddle is opened.
    pub moved: u64,
    /// Why the files were copied; `None` where they are the store's now, and the export is gone.
    pub copied: Option<String>,
}

/// An export that is read.
#[derive(Debug)]
pub struct Export {
    place: PathBuf,
    /// What it lies in, if it is no archive.
    directory: Option<Directory>,
    manifest: Manifest,
    bytes: Vec<u8>,
}

/// The file of a puddle of an export.
pub enum ExportedFile<'f> {
    /// A file of its own, whose length and header are checked.
    File(MediaFile),
    /// The bytes of one in an archive.
    Stream(&'f mut dyn Read),
}

impl Export {
    /// Finds an export, a directory or an archive, and reads its manifest.
    ///
    /// # Errors
    /// `FileMissing`, `NotAFile`, `Format` for what is no export, a damaged or newer one; `Io`.
    pub fn open(place: &Path) -> Result<Export> {
        let place = std::path::absolute(place)
            .map_err(|error| Error::io("finding the absolute path", place, error))?;
        let name = place.file_name().and_then(|name| name.to_str());
        let Some(name) = name else {
            return Err(refused(&place, "this names no directory".to_owned()));
        };
        if place.symlink_metadata().is_ok_and(|found| found.is_file()) {
            let (manifest, bytes) = archive::read_manifest(&place)?;
            return Ok(Export {
                place,
                directory: None,
                manifest,
                bytes,
            });
        }
        let directory = reading::find_directory(parent(&place), name, ROLE)?;
        let role = Role {
            structure: "the manifest of an export",
            cure: "name the directory that `durum export` made",
        };
        let file = reading::open_in(&directory, FILE_NAME, role, false)?;
        let format = |source| Error::format(file.path(), 0, source, CURE);
        let bytes = reading::whole(&file, BEGINNING_BYTES, |head, found| {
            // One byte more than it should have tells that it has too many.
            let length = export::length(head).map_err(format)?;
            Ok(length.saturating_add(1).min(found))
        })?;
        Ok(Export {
            manifest: export::parse(&bytes).map_err(format)?,
            place,
            directory: Some(directory),
            bytes,
        })
    }

    /// What it holds.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The manifest's file.
    pub fn manifest_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Where it is.
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// Gives each of its puddles to `take`.
    ///
    /// # Errors
    /// `FileMissing`, `NotAFile`, `Format`, `Damaged`, `ImportRefused`, `Io`; those of `take`.
    pub fn each_puddle(
        &self,
        mut take: impl FnMut(Uuid, ExportedFile<'_>) -> Result<()>,
    ) -> Result<()> {
        let Some(directory) = &self.directory else {
            return archive::each_puddle(&self.place, &self.manifest, |puddle, from| {
                take(puddle, ExportedFile::Stream(from))
            });
        };
        let puddles = &self.manifest.puddles;
        let files = puddles.iter().map(|(puddle, exported)| {
            let name = puddle.to_string();
            let open = || reading::open_in(directory, &name, ROLE, false);
            let file = names::with_descriptors(&self.place, FILES_AHEAD, open)?;
            ensure_is(&file, &exported.header(*puddle))?;
            Ok((*puddle, file))
        });
        each_ahead(files, |found| {
            let (puddle, file) = found?;
            take(puddle, ExportedFile::File(file))
        })
    }

    /// Copies the file of one of its puddles to a new one, which is as long as it and has no room of its own yet. Not
    /// synced.
    ///
    /// # Errors
    /// `Damaged` where the contents are not those that were exported; `StorageFull`, `Io`.
    pub fn copy(&self, puddle: Uuid, from: ExportedFile<'_>, to: &MediaFile) -> Result<()> {
        let Some(exported) = self.manifest.puddles.get(&puddle) else {
            return Err(refused(
                &self.place,
                format!("there is no puddle {puddle} in it"),
            ));
        };
        let size = exported.header(puddle).file_size();
        let found = match from {
            ExportedFile::File(from) => sparse::copy_written(&from, to, size)?,
            ExportedFile::Stream(from) => sparse::fill(from, &self.place, to, size)?,
        };
        ensure_sum(
            &self.place.join(puddle.to_string()),
            found,
            Some(exported.sum),
        )
    }

    /// The directory that its files lie in, if it is no archive.
    pub(crate) fn directory(&self) -> Option<&Directory> {
        self.directory.as_ref()
    }

    /// Why the files cannot become those of a store of this process at `store`, if they cannot.
    pub(crate) fn why_copied(&self, store: &Path) -> Result<Option<String>> {
        let of = |path: &Path| {
            rustix::fs::stat(path).map_err(|errno| Error::io("looking at it", path, errno.into()))
        };
        if self.directory.is_none() {
            return Ok(Some("it is an archive".to_owned()));
        }
        let (here, there) = (of(self.place())?, of(store)?);
        Ok(why_not_own(&here).or_else(|| {
            (here.st_dev != there.st_dev).then(|| "it is on another file system".to_owned())
        }))
    }
}

/// What the system says of a file of an export that is to become the store's.
pub(crate) struct Ownable {
    /// Why it cannot, if so, whatever other names it has.
    pub(crate) why_copied: Option<String>,
    /// Whether it has as many names as one that is being taken over, in the export and in the store, or fewer, or more.
    pub(crate) names: Ordering,
    /// Bytes that have their place.
    pub(crate) allocated: u64,
}

impl Ownable {
    /// Looks at an open file.
    pub(crate) fn of(file: &MediaFile) -> Result<Ownable> {
        let found = rustix::fs::fstat(file)
            .map_err(|errno| Error::io("looking at it", file.path(), errno.into()))?;
        Ok(Ownable {
            why_copied: why_not_own(&found),
            names: found.st_nlink.cmp(&2),
            allocated: u64::try_from(found.st_blocks)
                .unwrap_or(0)
                .saturating_mul(512),
        })
    }
}

/// Checks length and header of a file of an export.
fn ensure_is(file: &MediaFile, expected: &PuddleHeader) -> Result<()> {
    let mut head = [0; ENCODED_SIZE];
    let length = file.len_at_opening();
    let part = head.get_mut(..length.min(ENCODED_SIZE as u64) as usize);
    reading::exact(file, 0, part.unwrap_or_default(), "reading a puddle header")?;
    let found = puddle::parse(&head, length)
        .map_err(|source| Error::format(file.path(), 0, source, CURE))?;
    match found == *expected {
        true => Ok(()),
        false => Err(Error::Damaged {
            file: file.path().to_owned(),
            structure: "puddle header",
            offset: 0,
            problem: "it is not that of the puddle which the manifest names".to_owned(),
            cure: CURE.into(),
        }),
    }
}

/// Why a file or directory is not this user's alone.
fn why_not_own(found: &rustix::fs::Stat) -> Option<String> {
    let is_own = found.st_uid == rustix::process::geteuid().as_raw();
    let may_write = found.st_mode & 0o022 != 0;
    match (is_own, may_write) {
        (true, false) => None,
        (true, true) => Some("others may write to it, and may have it open".to_owned()),
        (false, _) => Some("it is another user's, who may have it open".to_owned()),
    }
}

pub(crate) fn refused(place: &Path, reason: String) -> Error {
    Error::ImportRefused {
        place: place.to_owned(),
        reason,
    }
}

/// The names that the pools of an export get, by the pool, that which was asked for first; none where they join one.
pub(crate) fn names_of(manifest: &Manifest, options: &ImportOptions) -> Vec<(Uuid, String)> {
    if options.into.is_some() {
        return Vec::new();
    }
    let asked = manifest.pools.get_key_value(&manifest.pool).into_iter();
    let pools = manifest.pools.iter();
    let others = pools.filter(|(uuid, _)| **uuid != manifest.pool);
    asked
        .chain(others)
        .map(|(uuid, pool)| match &options.name {
            Some(name) if *uuid == manifest.pool => (*uuid, name.clone()),
            _ => (*uuid, pool.name.clone()),
        })
        .collect()
}
