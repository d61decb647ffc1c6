//! What the compiled code of a program says of itself: its functions, their regions, and how they go on.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::fmt;
use std::sync::Mutex;

use durum::primitive::locked;
use durum_format::code::places;
use durum_format::section::Code;

/// A region of a function (docs/reference/ido-ir.md).
#[derive(Debug)]
#[repr(C)]
pub struct Region {
    /// The function's hash, and the region's number.
    pub code: u64,
    /// Where it begins; 0: not known.
    pub line: u32,
    /// Words of its live-ins.
    pub words: u16,
    /// 1: the call may come back with more locks than it was made with. 2: the function's own locals are needed.
    /// 4: from here on others may store where the section has stored.
    pub flags: u16,
    /// Bit i of word i / 64: word i of the live-ins is a pointer.
    pub addresses: [u64; 2],
}

/// The flags of a region.
const BEGINS_SECTION: u16 = 1;
const NEEDS_LOCALS: u16 = 2;
const HANDS_OVER: u16 = 4;

impl Region {
    /// Whether a call may come back in a section that it was not made in.
    pub(crate) fn may_begin_section(&self) -> bool {
        self.flags & BEGINS_SECTION != 0
    }

    /// Whether locals of the function are needed where it goes on.
    #[inline]
    pub(crate) fn needs_locals(&self) -> bool {
        self.flags & NEEDS_LOCALS != 0
    }

    /// Whether others may store where the section has stored, while it has not recorded again.
    #[inline]
    pub(crate) fn hands_over(&self) -> bool {
        self.flags & HANDS_OVER != 0
    }
}

/// A function that goes on after a crash.
#[derive(Debug)]
#[repr(C)]
pub struct Function {
    /// Of its code: 48 bits, not 0.
    pub hash: u64,
    /// Its name.
    pub name: *const c_char,
    /// The file that it was compiled from.
    pub file: *const c_char,
    /// Has the code go on at a region, with the words of its live-ins. What the function returns is in `result`.
    pub resume: unsafe extern "C" fn(
        words: *const c_void,
        region: u32,
        result: *mut c_void,
        code: *const c_void,
    ),
    /// The code.
    pub code: *const c_void,
    /// Its regions.
    pub regions: *const Region,
    /// How many.
    pub count: u64,
}

// SAFETY: a table of constants, as `register` demands.
unsafe impl Sync for Function {}

/// The tables of all modules.
static TABLES: Mutex<Vec<&'static [Function]>> = Mutex::new(Vec::new());

/// Enters the functions of a module.
///
/// # Safety
/// There are `count` of them, as docs/reference/ido-ir.md has them, and they do not change as long as the program
/// runs.
pub(crate) unsafe fn register(functions: *const Function, count: u64) {
    if count > 0 {
        // SAFETY: as the caller promises.
        let table = unsafe { std::slice::from_raw_parts(functions, count as usize) };
        locked(&TABLES).push(table);
    }
}

impl Function {
    /// Its region with this number.
    pub(crate) fn region(&self, number: u16) -> Option<&Region> {
        let index = u64::from(number)
            .checked_sub(1)
            .filter(|index| *index < self.count)?;
        // SAFETY: as many regions there are.
        Some(unsafe { &*self.regions.add(index as usize) })
    }
}

/// The function that goes on at `code`, if it is in this program.
pub(crate) fn find(code: Code) -> Option<&'static Function> {
    let hash = code.function();
    let tables = locked(&TABLES);
    let mut all = tables.iter().flat_map(|table| table.iter());
    all.find(|function| function.hash == hash)
}

/// What all functions of this program tell a person.
pub(crate) fn with_functions<T>(tell: impl FnOnce(Vec<places::Function<'_>>) -> T) -> T {
    let tables = locked(&TABLES);
    let all = || tables.iter().flat_map(|table| table.iter());
    let texts: Vec<[Cow<'_, str>; 2]> = all()
        .map(|function| [text(function.name), text(function.file)])
        .collect();
    let told = all().zip(&texts).map(|(function, [name, file])| {
        let numbers = 1..=u16::try_from(function.count).unwrap_or(u16::MAX);
        let lines = numbers.map(|number| function.region(number).map_or(0, |region| region.line));
        places::Function {
            hash: function.hash,
            name,
            file,
            lines: lines.collect(),
        }
    });
    tell(told.collect())
}

fn text<'t>(text: *const c_char) -> Cow<'t, str> {
    match text.is_null() {
        true => "?".into(),
        // SAFETY: strings of a table of constants.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", text(self.name), text(self.file))
    }
}
