//! Locals that a section's record leads to: by a live-in of its own, or by one of a caller's frame. They were written
//! outside of the section, or in it.

use std::ffi::c_void;
use std::sync::Once;

use durum_ido::abi::*;
use durum_persist::Site;
use durum_persist::record::{self, Trace};
use durum_persist::simulate::{Plan, Report, Rules, explore_with_recovery};

use crate::crash::{recover, site};
use crate::program::{
    Root, address, at, function, lock, region, resumes, set, store, unlock, words,
};
use crate::support::{alone, close, on_a_thread, open, recorded};

const COPY: u64 = 0x5050_5050_5050;
const CALL: u64 = 0x6060_6060_6060;
const MARK: u64 = 0x7070_7070_7070;

static COPY_REGIONS: [Region; 2] = [region(COPY, 1, 2), region(COPY, 2, 2)];
static CALL_REGIONS: [Region; 2] = [region(CALL, 1, 2), region(CALL, 2, 2)];
static MARK_REGIONS: [Region; 1] = [region(MARK, 1, 1)];

struct Functions([Function; 3]);
unsafe impl Sync for Functions {}

static FUNCTIONS: Functions = Functions([
    function(COPY, c"copy", resume_copy, &COPY_REGIONS),
    function(CALL, c"call", resume_call, &CALL_REGIONS),
    function(MARK, c"mark", resume_mark, &MARK_REGIONS),
]);

pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe { __durum_ido_register(FUNCTIONS.0.as_ptr(), 3) });
}

/// A local with this value, which nobody is told of, as long as `body` runs.
unsafe fn with_local(value: u64, body: impl FnOnce(u64)) {
    unsafe {
        let thread = __durum_ido_thread();
        let local: *mut u64 = __durum_ido_locals(thread, 64).cast();
        durum_persist::line::store_u64(local, value);
        body(address(local));
        __durum_ido_leave(thread, local.cast());
    }
}

/// Stores what the local holds: the record leads there.
unsafe fn copy(root: *mut Root, local: u64) {
    unsafe {
        lock(root);
        let words = [address(root), local];
        crate::program::record(__durum_ido_thread(), &COPY_REGIONS[0], words);
        copy_on(words);
    }
}

unsafe fn copy_on([root, local]: [u64; 2]) {
    unsafe {
        let root = at::<Root>(root);
        let value = at::<u64>(local).read();
        store(__durum_ido_thread(), &raw mut (*root).values[0], value);
        unlock(root);
    }
}

/// The same of a local that the section has changed before.
unsafe fn change(root: *mut Root, local: u64) {
    unsafe {
        lock(root);
        let words = [address(root), local];
        crate::program::record(__durum_ido_thread(), &COPY_REGIONS[1], words);
        change_local(words);
    }
}

unsafe fn change_local([root, local]: [u64; 2]) {
    unsafe {
        let (thread, words) = (__durum_ido_thread(), [root, local]);
        store(thread, at(local), 2);
        crate::program::record(thread, &COPY_REGIONS[0], words);
        copy_on(words);
    }
}

resumes!(resume_copy: 1 => copy_on, _ => change_local);

/// The same behind a call, whose record leads to the frame, and the frame to the local.
unsafe fn call(root: *mut Root, local: u64) {
    unsafe {
        lock(root);
        let (thread, words) = (__durum_ido_thread(), [address(root), local]);
        let frame = __durum_ido_call(
            thread,
            std::ptr::null(),
            &CALL_REGIONS[0],
            words.as_ptr().cast(),
        );
        crate::program::record(thread, &MARK_REGIONS[0], [address(root)]);
        mark([address(root)]);
        __durum_ido_returned(thread, frame);
        call_back(words);
    }
}

unsafe fn mark([root]: [u64; 1]) {
    unsafe {
        let root = at::<Root>(root);
        store(__durum_ido_thread(), &raw mut (*root).values[1], 1);
    }
}

resumes!(resume_mark: _ => mark);

unsafe fn call_back(words: [u64; 2]) {
    unsafe {
        crate::program::record(__durum_ido_thread(), &CALL_REGIONS[1], words);
        copy_on(words);
    }
}

resumes!(resume_call: 1 => call_back, _ => copy_on);

type Section = unsafe fn(*mut Root, u64);

/// The local holds `value`, and 1 in an earlier section.
fn trace(section: Section, value: u64, skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |root| unsafe {
            with_local(1, |local| copy(root, local));
            set(root, 0, 3);
        },
        |root, ()| unsafe {
            with_local(value, |local| section(root, local));
            record::note("acknowledged", 1);
        },
    )
}

/// It is what was there, or what the local holds; nothing that it held before.
fn crashed(trace: &Trace) -> Result<Report, String> {
    let mut plan = Plan::new(Rules::Lines, 5);
    plan.random_images = 8;
    plan.single_units_max = 8;
    explore_with_recovery(trace, &plan, recover, |image, point| {
        let is_done = point.last_note("acknowledged").is_some();
        on_a_thread(|| {
            let root = open(image)?;
            let found = unsafe { (&raw const (*root).values[0]).read() };
            close().map_err(|error| error.to_string())?;
            match found == 2 || (found == 3 && !is_done) {
                true => Ok(()),
                false => Err(format!("{found}, which the local held before")),
            }
        })
        .inspect_err(|_| drop(close()))
    })
    .map_err(|failure| failure.to_string())
}

#[test]
fn locals_are_durable_before_a_record_leads_to_them() {
    let _alone = alone();
    for section in [copy as Section, call] {
        crashed(&trace(section, 2, None)).unwrap_or_else(|failure| panic!("{failure}"));
        for part in ["fence between stores and the record", "write back locals"] {
            let failure = crashed(&trace(section, 2, Some(site(part))));
            let failure = failure.expect_err("nothing is noticed");
            println!("{part}: {}", failure.lines().next().unwrap_or_default());
        }
    }
}

/// No record tells of a store to its own slot: recovery writes to pools only.
#[test]
fn locals_that_a_section_changes_are_durable_before_its_next_record() {
    let _alone = alone();
    crashed(&trace(change, 5, None)).unwrap_or_else(|failure| panic!("{failure}"));
    for part in [
        "fence between stores and the record",
        "write back the lines",
    ] {
        let failure = crashed(&trace(change, 5, Some(site(part)))).expect_err("nothing is noticed");
        println!("{part}: {}", failure.lines().next().unwrap_or_default());
    }
}
