//! The kinds of damage: what happens to one file of a store.

use std::fmt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};

use crate::stores::{self, Base};

/// Numbers that follow from a seed.
pub struct Draws(u64);

impl Draws {
    pub fn new(seed: u64) -> Draws {
        Draws(seed)
    }

    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ mixed >> 31) % end
    }

    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u64) as usize]
    }
}

#[derive(Clone, Debug)]
pub enum Kind {
    /// Bits of one byte.
    Flip {
        at: u64,
        bits: u8,
    },
    /// So many zeros.
    Zero {
        at: u64,
        len: u64,
    },
    Cut {
        len: u64,
    },
    /// Zeros behind the end, which take no room.
    Extend {
        len: u64,
    },
    /// Two files exchange their names.
    Swap {
        with: PathBuf,
    },
    Delete,
    Fifo,
    /// A link to the file, which lies elsewhere in the store, or to nothing.
    Symlink {
        leads_to_it: bool,
    },
    Directory,
    /// Bytes that durum never wrote.
    Foreign {
        len: u64,
        seed: u64,
    },
    /// A hole where a page was.
    Sparse {
        page: u64,
    },
    /// The file as it was some transactions ago, if it was there.
    Older,
}

/// One kind, and the file that it happens to.
pub struct Damage {
    pub file: PathBuf,
    pub kind: Kind,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {:?}", self.file.display(), self.kind)
    }
}

impl Damage {
    /// All kinds in turn, each on every file now and then.
    pub fn draw(draws: &mut Draws, base: &Base, number: u64) -> Damage {
        let files: Vec<&PathBuf> = base.files.keys().collect();
        let file = files[draws.below(files.len() as u64) as usize].clone();
        let len = base.files[&file];
        // Most is told by the first page, and by what is not zero.
        let at = match draws.below(3) {
            0 => draws.below(len.clamp(1, 4096)),
            1 => draws.below(len.max(1)),
            _ => base.used_byte(&file, draws.below(u64::MAX)),
        };
        let kind = match number % 12 {
            0 => Kind::Flip {
                at,
                bits: 1 << draws.below(8),
            },
            1 => Kind::Zero {
                at: at / 512 * 512,
                len: 512,
            },
            2 => Kind::Cut {
                len: draws
                    .one_of(&[0, 4096, len / 2, len.saturating_sub(1), at])
                    .min(len),
            },
            3 => Kind::Extend {
                len: draws.one_of(&[len + 1, len + 4096, len + (2 << 20), 3 << 30, 1 << 40]),
            },
            4 => {
                let others: Vec<&PathBuf> =
                    files.into_iter().filter(|other| **other != file).collect();
                Kind::Swap {
                    with: others[draws.below(others.len() as u64) as usize].clone(),
                }
            }
            5 => Kind::Delete,
            6 => Kind::Fifo,
            7 => Kind::Symlink {
                leads_to_it: draws.below(2) == 0,
            },
            8 => Kind::Directory,
            9 => Kind::Foreign {
                len: draws.one_of(&[len, 1, 100, 65_536]),
                seed: draws.below(u64::MAX),
            },
            10 => Kind::Sparse { page: at / 4096 },
            _ => Kind::Older,
        };
        Damage { file, kind }
    }

    /// The files that are not what they were.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let other = match &self.kind {
            Kind::Swap { with } => Some(with.as_path()),
            _ => None,
        };
        std::iter::once(self.file.as_path()).chain(other)
    }

    /// Damages a copy of the store.
    pub fn inflict(&self, base: &Base, store: &Path) {
        let path = store.join(&self.file);
        let write = |at: u64, bytes: &[u8]| {
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.write_all_at(bytes, at).unwrap();
        };
        let set_len = |len: u64| {
            let file = std::fs::File::options().write(true).open(&path).unwrap();
            file.set_len(len).unwrap();
        };
        let zero = |at: u64, len: u64| {
            let end = (at + len).min(base.files[&self.file]);
            write(at, &vec![0; end.saturating_sub(at) as usize]);
        };
        match &self.kind {
            Kind::Flip { at, bits } => {
                let mut byte = [0];
                let file = std::fs::File::open(&path).unwrap();
                // An empty file has no bits.
                if file.read_exact_at(&mut byte, *at).is_ok() {
                    write(*at, &[byte[0] ^ bits]);
                }
            }
            Kind::Zero { at, len } => zero(*at, *len),
            Kind::Cut { len } | Kind::Extend { len } => set_len(*len),
            Kind::Swap { with } => {
                let aside = store.with_extension("aside");
                std::fs::rename(&path, &aside).unwrap();
                std::fs::rename(store.join(with), &path).unwrap();
                std::fs::rename(&aside, store.join(with)).unwrap();
            }
            Kind::Delete => std::fs::remove_file(&path).unwrap(),
            Kind::Fifo => {
                std::fs::remove_file(&path).unwrap();
                let made = std::process::Command::new("mkfifo")
                    .arg(&path)
                    .status()
                    .unwrap();
                assert!(made.success());
            }
            Kind::Symlink { leads_to_it } => {
                let aside = store.with_extension("aside");
                std::fs::rename(&path, &aside).unwrap();
                symlink(
                    if *leads_to_it {
                        &aside
                    } else {
                        Path::new("nowhere")
                    },
                    &path,
                )
                .unwrap();
            }
            Kind::Directory => {
                std::fs::remove_file(&path).unwrap();
                std::fs::create_dir(&path).unwrap();
            }
            Kind::Foreign { len, seed } => {
                let mut draws = Draws::new(*seed);
                let bytes: Vec<u8> = (0..*len).map(|_| draws.below(256) as u8).collect();
                std::fs::write(&path, bytes).unwrap();
            }
            Kind::Sparse { page } => zero(page * 4096, 4096),
            Kind::Older => {
                let older = base.older.join(&self.file);
                std::fs::remove_file(&path).unwrap();
                if older.exists() {
                    stores::copy_file(&older, &path);
                }
            }
        }
    }

    /// Puts the files back as they were.
    pub fn undo(&self, base: &Base, store: &Path) {
        for file in self.files() {
            let path = store.join(file);
            match std::fs::symlink_metadata(&path) {
                Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path).unwrap(),
                Ok(_) => std::fs::remove_file(&path).unwrap(),
                Err(_) => {}
            }
            stores::copy_file(&base.path.join(file), &path);
        }
        let _ = std::fs::remove_file(store.with_extension("aside"));
    }
}
