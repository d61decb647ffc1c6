//! An export in one file: a [tar](https://www.gnu.org/software/tar/manual/html_node/Standard.html) archive of the files
//! that a directory would have, the manifest first. Names in it are looked at, and nothing is ever made by them.

use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use durum_format::Uuid;
use durum_format::export::{self, BYTES_MAX, FILE_NAME, Manifest};
use durum_persist::Site;
use durum_persist::file::{self, MediaFile};
use flate2::Compression as Level;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::directory::{Unfinished, hidden_beside, parent};
use crate::error::{Error, Result};
use crate::files::{self, grown};

/// What a compressed archive begins with.
const GZIP: [u8; 2] = [0x1f, 0x8b];
const BUFFER_BYTES: usize = 256 << 10;

/// What becomes of the bytes of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// They are as they are.
    None,
    /// They are compressed, as by `gzip`.
    Gzip,
}

/// An archive that is being written.
pub(crate) struct Archive {
    path: PathBuf,
    builder: tar::Builder<Box<dyn Finish>>,
}

/// A writer that has an end.
trait Finish: Write {
    fn finish(self: Box<Self>) -> io::Result<MediaFile>;
}

impl Finish for BufWriter<Appended> {
    fn finish(self: Box<Self>) -> io::Result<MediaFile> {
        let appended = self.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(appended.file)
    }
}

impl Finish for GzEncoder<BufWriter<Appended>> {
    fn finish(self: Box<Self>) -> io::Result<MediaFile> {
        Box::new(GzEncoder::finish(*self)?).finish()
    }
}

/// A file that is written from its beginning on.
struct Appended {
    file: MediaFile,
    at: u64,
}

impl Write for Appended {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all_at(bytes, self.at)?;
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Has `fill` write an archive under a hidden name, which then gets the name `target`. It is durable on return. Nothing
/// is left behind on an error.
pub(crate) fn appear<T, E: From<Error>>(
    target: &Path,
    site: Site,
    compression: Compression,
    fill: impl FnOnce(&mut Archive) -> Result<T, E>,
) -> Result<T, E> {
    let path = hidden_beside(target)?;
    let unfinished = Unfinished(&path);
    let mut archive = Archive::create(&path, compression)?;
    let made = fill(&mut archive)?;
    archive.end(site)?;
    file::rename(&path, target, site)
        .map_err(|error| Error::io("moving the archive into its place", target, error))?;
    // ORDER: its name is durable before anybody is told of it.
    files::sync_dir(parent(target), site)?;
    std::mem::forget(unfinished);
    Ok(made)
}

impl Archive {
    fn create(path: &Path, compression: Compression) -> Result<Archive> {
        let failed = |error| grown("making an archive", path, 0, error);
        let file = MediaFile::create_new(path).map_err(failed)?;
        // It is only this user's, as its pools may be.
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, Appended { file, at: 0 });
        let writer: Box<dyn Finish> = match compression {
            Compression::None => Box::new(buffered),
            Compression::Gzip => Box::new(GzEncoder::new(buffered, Level::fast())),
        };
        Ok(Archive {
            path: path.to_owned(),
            builder: tar::Builder::new(writer),
        })
    }

    /// Adds a file of these parts.
    pub(crate) fn add(&mut self, name: &str, parts: Vec<&[u8]>) -> Result<()> {
        let size = parts.iter().map(|part| part.len() as u64).sum();
        let mut header = tar::Header::new_gnu();
        header.set_size(size);
        header.set_mode(0o600);
        header.set_entry_type(tar::EntryType::Regular);
        self.builder
            .append_data(&mut header, name, Parts(parts.into_iter()))
            .map_err(|error| grown("writing an archive", &self.path, size, error))
    }

    fn end(self, site: Site) -> Result<()> {
        let failed = |error| grown("writing an archive", &self.path, 0, error);
        let file = self.builder.into_inner().and_then(Finish::finish);
        // ORDER: it is durable before it has its name; else a crash leaves a torn one.
        file.and_then(|file| file.sync(site)).map_err(failed)
    }
}

/// Parts of a file, read one after the other.
struct Parts<'b>(std::vec::IntoIter<&'b [u8]>);

impl Read for Parts<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(part) = self.0.as_mut_slice().first_mut() else {
            return Ok(0);
        };
        let read = part.read(buffer)?;
        if part.is_empty() {
            self.0.next();
        }
        match read {
            0 if !buffer.is_empty() => self.read(buffer),
            read => Ok(read),
        }
    }
}

/// Opens an archive and reads its manifest, and the manifest's file.
pub(crate) fn read_manifest(path: &Path) -> Result<(Manifest, Vec<u8>)> {
    let mut found = None;
    each(path, |name, size, from| {
        if name != FILE_NAME || size > BYTES_MAX {
            return Err(no_export(
                path,
                "it does not begin with the manifest of one",
            ));
        }
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).map_err(unreadable(path))?;
        let parsed = export::parse(&bytes);
        let parsed = parsed.map_err(|source| {
            Error::format(&path.join(FILE_NAME), 0, source, "make the export again")
        })?;
        found = Some((parsed, bytes));
        Ok(false)
    })?;
    found.ok_or_else(|| no_export(path, "there is nothing in it"))
}

/// Gives each puddle of an archive to `take`, with the bytes of its file. All that the manifest names are there, once.
pub(crate) fn each_puddle(
    path: &Path,
    manifest: &Manifest,
    mut take: impl FnMut(Uuid, &mut dyn Read) -> Result<()>,
) -> Result<()> {
    let mut missing = manifest.puddles.clone();
    each(path, |name, size, from| {
        if name == FILE_NAME {
            return Ok(true);
        }
        let uuid: Option<Uuid> = name.parse().ok();
        let known = uuid.and_then(|uuid| missing.remove_entry(&uuid));
        let Some((uuid, puddle)) = known else {
            return Err(no_export(
                path,
                "it has files that its manifest does not name",
            ));
        };
        if size != puddle.header(uuid).file_size() {
            return Err(no_export(
                path,
                "a puddle in it has another length than its manifest says",
            ));
        }
        take(uuid, from)?;
        Ok(!missing.is_empty())
    })?;
    match missing.is_empty() {
        true => Ok(()),
        false => Err(no_export(path, "puddles are missing in it")),
    }
}

/// Visits the entries of an archive, until `visit` says that it has seen enough.
fn each(
    path: &Path,
    mut visit: impl FnMut(&str, u64, &mut dyn Read) -> Result<bool>,
) -> Result<()> {
    let failed = unreadable(path);
    let mut file = File::open(path).map_err(failed)?;
    let mut magic = [0; 2];
    let is_gzip = file.read(&mut magic).map_err(failed)? == 2 && magic == GZIP;
    io::Seek::rewind(&mut file).map_err(failed)?;
    let buffered = io::BufReader::with_capacity(BUFFER_BYTES, file);
    let reader: Box<dyn Read> = match is_gzip {
        true => Box::new(GzDecoder::new(buffered)),
        false => Box::new(buffered),
    };
    let mut archive = tar::Archive::new(reader);
    let entries = archive.entries().map_err(failed)?;
    // Raw: what says something of other entries, as a long name, is read by nobody, and refused.
    for entry in entries.raw(true) {
        let mut entry = entry.map_err(failed)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let (size, kind) = (entry.size(), entry.header().entry_type());
        if !kind.is_file() {
            return Err(no_export(path, "it has something else in it than files"));
        }
        if !visit(&name, size, &mut entry)? {
            break;
        }
    }
    Ok(())
}

fn unreadable(path: &Path) -> impl Fn(io::Error) -> Error + Copy {
    move |error| match error.kind() {
        // What tar and gzip say of bytes that are none of theirs.
        io::ErrorKind::InvalidData
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::UnexpectedEof
        | io::ErrorKind::Other => Error::ImportRefused {
            place: path.to_owned(),
            reason: format!("it is no whole archive ({error}); make the export again"),
        },
        _ => Error::io("reading an archive", path, error),
    }
}

fn no_export(path: &Path, problem: &str) -> Error {
    Error::ImportRefused {
        place: path.to_owned(),
        reason: format!("{problem}; name what `durum export` made"),
    }
}
