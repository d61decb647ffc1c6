//! What sections take and free: crashed at every step, nothing is lost, and nothing belongs to two.

use std::ffi::c_void;
use std::path::Path;
use std::sync::atomic::AtomicPtr;
use std::sync::{Barrier, Once};

use durum_format::extent;
use durum_ido::abi::*;
use durum_ido::abi_locks::*;
use durum_ido::abi_typed::__durum_ido_typed_malloc;
use durum_persist::record::{self, Trace};
use durum_persist::simulate::{Plan, Report, Rules, explore_with_recovery};
use durum_persist::{Site, line};
use durum_service::{CheckOptions, ReadOnlyStore, Severity};

use crate::crash::{recover, site};
use crate::program::{
    Root, address, at, function, lock, record, region, resumes, store, unlock, words,
};
use crate::support::{alone, close, on_a_thread, open, recorded};

const REPLACE: u64 = 0x1010_1010_1010;
const EXCHANGE: u64 = 0x2020_2020_2020;
const TOUCH: u64 = 0x3030_3030_3030;
const BLANK: u64 = 0x4040_4040_4040;
const LINK: u64 = 0xb0b0_b0b0_b0b0;

static REPLACE_REGIONS: [Region; 1] = [region(REPLACE, 1, 6)];
static EXCHANGE_REGIONS: [Region; 2] = [region(EXCHANGE, 1, 4), region(EXCHANGE, 2, 5)];
static TOUCH_REGIONS: [Region; 1] = [region(TOUCH, 1, 3)];
static BLANK_REGIONS: [Region; 1] = [region(BLANK, 1, 5)];
static LINK_REGIONS: [Region; 1] = [region(LINK, 1, 3)];

struct Functions([Function; 5]);
unsafe impl Sync for Functions {}

static FUNCTIONS: Functions = Functions([
    function(REPLACE, c"replace", resume_replace, &REPLACE_REGIONS),
    function(EXCHANGE, c"exchange", resume_exchange, &EXCHANGE_REGIONS),
    function(TOUCH, c"touch", resume_touch, &TOUCH_REGIONS),
    function(BLANK, c"blank", resume_blank, &BLANK_REGIONS),
    function(LINK, c"link", resume_link, &LINK_REGIONS),
]);

pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe {
        __durum_ido_register(FUNCTIONS.0.as_ptr(), FUNCTIONS.0.len() as u64)
    });
}

/// A box that one section takes, and another one puts in an empty place by a word that needs no record.
unsafe fn link(root: *mut Root, index: u64, size: u64, value: u64) {
    unsafe {
        lock(root);
        let fresh = nv_malloc(size as usize);
        unlock(root);
        let boxed = fresh.cast::<u64>();
        for (at, value) in [(0, size), (1, value), (size as usize / 8 - 1, value)] {
            line::store_u64(boxed.add(at), value);
        }
        durum_own(fresh, size as usize);
        lock(root);
        let words = [address(root), index, address(boxed)];
        let thread = __durum_ido_thread();
        __durum_ido_record_word(thread, &LINK_REGIONS[0], words.as_ptr().cast());
        link_one(words);
    }
}

unsafe fn link_one([root, index, fresh]: [u64; 3]) {
    unsafe {
        let root = at(root);
        store(__durum_ido_thread(), place(root, index), fresh);
        unlock(root);
    }
}

resumes!(resume_link: _ => link_one);

/// A box is freed, and then another one is taken, which has to be recorded as a lock is let go. Only behind that the
/// root leads to the new one.
unsafe fn free_early(root: *mut Root, index: u64, size: u64, value: u64) {
    unsafe {
        lock(root);
        __durum_ido_pthread_mutex_lock(&raw mut (*root).other);
        nv_free(at::<c_void>(place(root, index).read()));
        let fresh = address(nv_malloc(size as usize).cast::<u64>());
        __durum_ido_pthread_mutex_unlock(&raw mut (*root).other);
        let words = [address(root), index, fresh, 0, size, value];
        record(__durum_ido_thread(), &REPLACE_REGIONS[0], words);
        replace_one(words);
    }
}

/// What the root has in the place of a box: where it lies.
unsafe fn place(root: *mut Root, index: u64) -> *mut u64 {
    unsafe { (&raw mut (*root).values).cast::<u64>().add(index as usize) }
}

/// A box that is filled and takes the place of another one, which is freed; of 0 bytes none takes it.
pub unsafe fn replace(root: *mut Root, index: u64, size: u64, value: u64) {
    unsafe {
        lock(root);
        let fresh = match size {
            0 => 0,
            _ => address(nv_malloc(size as usize).cast::<u64>()),
        };
        let old = place(root, index).read();
        let words = [address(root), index, fresh, old, size, value];
        record(__durum_ido_thread(), &REPLACE_REGIONS[0], words);
        replace_one(words);
    }
}

unsafe fn replace_one([root, index, fresh, old, size, value]: [u64; 6]) {
    unsafe {
        let root = at(root);
        fill(fresh, size, value);
        store(__durum_ido_thread(), place(root, index), fresh);
        nv_free(at::<c_void>(old));
        unlock(root);
    }
}

resumes!(resume_replace: _ => replace_one);

/// The size, and the value at both ends.
unsafe fn fill(place: u64, size: u64, value: u64) {
    if size > 0 {
        let (thread, words) = (__durum_ido_thread(), at::<u64>(place));
        let last = size as usize / 8 - 1;
        unsafe {
            store(thread, words, size);
            store(thread, words.add(1), value);
            store(thread, words.add(last), value);
        }
    }
}

/// One box is freed, and then another one takes its place, of zeros but for its size: two records.
unsafe fn exchange(root: *mut Root, index: u64, size: u64) {
    unsafe {
        lock(root);
        let old = place(root, index).read();
        let words = [address(root), index, old, size];
        record(__durum_ido_thread(), &EXCHANGE_REGIONS[0], words);
        take_out(words);
    }
}

unsafe fn take_out([root, index, old, size]: [u64; 4]) {
    unsafe {
        let thread = __durum_ido_thread();
        store(thread, place(at(root), index), 0);
        nv_free(at::<c_void>(old));
        let fresh = address(nv_calloc(1, size as usize).cast::<u64>());
        let words = [root, index, fresh, size, old];
        record(thread, &EXCHANGE_REGIONS[1], words);
        put_in(words);
    }
}

unsafe fn put_in([root, index, fresh, size, old]: [u64; 5]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at(root));
        // What was freed is there as long as the section.
        assert_ne!(at::<u64>(old).read(), 0);
        store(thread, at(fresh), size);
        store(thread, place(root, index), fresh);
        unlock(root);
    }
}

resumes!(resume_exchange: 1 => take_out, _ => put_in);

/// Of boxes with three pointers, which nobody stores.
const BLANK_SIZE: u64 = 48;

static BLANK_TYPE: AllocatedType = AllocatedType {
    text: c"struct \"blank\"(48,8){16:\"unset\":[*any;3];}\n".as_ptr(),
    known: AtomicPtr::new(std::ptr::null_mut()),
};

/// Such a box takes the place of another one, in which something is left that is no pointer.
unsafe fn blank(root: *mut Root, index: u64, value: u64) {
    unsafe {
        lock(root);
        let fresh = __durum_ido_typed_malloc(BLANK_SIZE as usize, &raw const BLANK_TYPE);
        let old = place(root, index).read();
        let words = [
            address(root),
            index,
            address(fresh.cast::<u64>()),
            old,
            value,
        ];
        record(__durum_ido_thread(), &BLANK_REGIONS[0], words);
        blank_one(words);
    }
}

unsafe fn blank_one([root, index, fresh, old, value]: [u64; 5]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at(root));
        fill(fresh, BLANK_SIZE, value);
        store(thread, place(root, index), fresh);
        if old != 0 {
            for unset in 2..5 {
                store(thread, at::<u64>(old).add(unset), 0x5a5a_5a5a_5a5a_5a5a);
            }
        }
        nv_free(at::<c_void>(old));
        unlock(root);
    }
}

resumes!(resume_blank: _ => blank_one);

#[derive(Clone, Copy, Debug)]
enum Step {
    /// One whose type has pointers takes the place of one of that type.
    Blank(u64, u64),
    Replace(u64, u64, u64),
    Exchange(u64, u64),
    /// Taken outside of sections, and what was there is freed outside.
    Outside(u64, u64, u64),
    /// Taken in one section, and put in an empty place in the next one.
    Link(u64, u64, u64),
    /// What was there is freed before what takes its place is taken.
    FreeEarly(u64, u64, u64),
}

/// Sizes of boxes, and the values in them.
type State = [(u64, u64); 4];

unsafe fn run(root: *mut Root, step: Step) {
    unsafe {
        match step {
            Step::Replace(index, size, value) => replace(root, index, size, value),
            Step::Exchange(index, size) => exchange(root, index, size),
            Step::Blank(index, value) => blank(root, index, value),
            Step::Link(index, size, value) => link(root, index, size, value),
            Step::FreeEarly(index, size, value) => free_early(root, index, size, value),
            Step::Outside(index, size, value) => {
                let (fresh, old) = (nv_malloc(size as usize), place(root, index).read());
                lock(root);
                let words = [address(root), index, address(fresh), 0, size, value];
                record(__durum_ido_thread(), &REPLACE_REGIONS[0], words);
                replace_one(words);
                nv_free(at::<c_void>(old));
            }
        }
    }
}

fn after(mut state: State, step: Step) -> State {
    match step {
        Step::Replace(index, size, value)
        | Step::Outside(index, size, value)
        | Step::Link(index, size, value)
        | Step::FreeEarly(index, size, value) => {
            state[index as usize] = (size, value);
        }
        Step::Exchange(index, size) => state[index as usize] = (size, 0),
        Step::Blank(index, value) => state[index as usize] = (BLANK_SIZE, value),
    }
    state
}

unsafe fn box_of(root: *mut Root, index: u64) -> (u64, u64) {
    unsafe {
        let found = at::<u64>(place(root, index).read());
        if found.is_null() {
            return (0, 0);
        }
        let (size, value) = (found.read(), found.add(1).read());
        let last = found.add(size as usize / 8 - 1).read();
        assert_eq!(last, value, "the end of box {index} of {size} bytes");
        (size, value)
    }
}

unsafe fn state_of(root: *mut Root) -> State {
    std::array::from_fn(|index| unsafe { box_of(root, index as u64) })
}

/// Objects that are taken in a store that nobody has open, but for the two roots.
pub fn boxes_in(path: &Path) -> Result<u64, String> {
    let store = ReadOnlyStore::open(path).map_err(|error| error.to_string())?;
    let mut count = 0;
    for puddle in store.puddles() {
        let Ok(view) = store.puddle(puddle.uuid) else {
            continue;
        };
        for extent in extent::extents(&view, view.header()) {
            let extent = extent.map_err(|error| error.to_string())?;
            count += match extent.slab() {
                Some(_) => (extent.slab_bitmap().iter())
                    .map(|word| u64::from(word.count_ones()))
                    .sum(),
                None => 1,
            };
        }
    }
    Ok(count - 2)
}

fn traced(steps: &[Step], skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |_| (),
        |root, ()| {
            for (number, step) in steps.iter().enumerate() {
                unsafe { run(root, *step) };
                record::note("acknowledged", number as u64 + 1);
            }
        },
    )
}

/// One of the states is there, and nothing else but `lost` objects; and the heap is of use.
fn judge(image: &Path, allowed: &[State], lost: u64) -> Result<(), String> {
    let found = on_a_thread(|| {
        let root = open(image)?;
        let found = unsafe { state_of(root) };
        close().map_err(|error| error.to_string())?;
        Ok(found)
    })?;
    if !allowed.contains(&found) {
        return Err(format!("{found:?} is none of {allowed:?}"));
    }
    let (taken, known) = (boxes_in(image)?, found.iter().filter(|(size, _)| *size > 0));
    let known = known.count() as u64;
    if !(known..=known + lost).contains(&taken) {
        return Err(format!("{taken} boxes are taken, and {known} are known"));
    }
    on_a_thread(|| {
        let root = open(image)?;
        let mut expected = found;
        for step in [
            Step::Replace(3, 24, 9),
            Step::Replace(2, 24, 8),
            Step::Replace(1, 400, 7),
        ] {
            unsafe { run(root, step) };
            expected = after(expected, step);
        }
        assert_eq!(unsafe { state_of(root) }, expected);
        close().map_err(|error| error.to_string())
    })?;
    let report = durum_service::check(image, &CheckOptions::default());
    let report = report.map_err(|error| error.to_string())?;
    let mut findings = report.findings.iter();
    match findings.find(|finding| finding.severity > Severity::Leak) {
        Some(finding) => Err(finding.to_string()),
        None => Ok(()),
    }
}

fn explore(steps: &[Step], skip: Option<Site>, lost: u64) -> Result<Report, String> {
    let trace = traced(steps, skip);
    let mut states = vec![State::default()];
    for step in steps {
        states.push(after(states[states.len() - 1], *step));
    }
    let mut plan = Plan::new(Rules::Lines, 1);
    let is_long = std::env::var_os("DURUM_CRASH_ALL").is_some();
    // A fence that is missing shows at few of them.
    plan.points_max = match skip {
        _ if is_long => None,
        Some(_) => Some(50),
        None => Some(32),
    };
    plan.random_images = 2;
    plan.single_units_max = 3;
    plan.nested_one_in = 40;
    plan.nested_points_max = if is_long { None } else { Some(6) };
    explore_with_recovery(&trace, &plan, recover, |image, point| {
        let last = point.last_note("acknowledged").unwrap_or(0) as usize;
        let judged = judge(image, &states[last..states.len().min(last + 2)], lost);
        judged.inspect_err(|_| drop(close()))
    })
    .map_err(|failure| failure.to_string())
}

const STEPS: [Step; 10] = [
    Step::Replace(0, 24, 1),
    Step::Replace(1, 24, 2),
    Step::Replace(0, 24, 3),
    Step::Replace(2, 1000, 4),
    Step::Exchange(1, 24),
    Step::Replace(0, 0, 0),
    Step::Replace(2, 3000, 5),
    Step::Exchange(2, 320),
    Step::Replace(1, 0, 0),
    Step::Replace(0, 24, 6),
];

/// Taken and freed outside of sections, where a crash may lose what is not linked yet, or not any more.
const OUTSIDE: [Step; 4] = [
    Step::Outside(0, 24, 1),
    Step::Outside(0, 1000, 2),
    Step::Outside(1, 24, 3),
    Step::Outside(1, 1000, 4),
];

/// What was freed is taken again at once, which a section that stores nothing has to record.
const LINKS: [Step; 6] = [
    Step::Replace(0, 24, 1),
    Step::Replace(0, 0, 0),
    Step::Link(0, 24, 2),
    Step::Replace(0, 0, 0),
    Step::Link(1, 24, 3),
    Step::Link(0, 24, 4),
];

/// The record that one was taken again says nothing of what the same section has freed: it may not get so far.
const EARLY: [Step; 3] = [
    Step::Replace(0, 24, 1),
    Step::FreeEarly(0, 24, 2),
    Step::FreeEarly(0, 24, 3),
];

const BLANKS: [Step; 6] = [
    Step::Blank(0, 1),
    Step::Blank(0, 2),
    Step::Blank(1, 3),
    Step::Blank(0, 4),
    Step::Blank(1, 5),
    Step::Blank(0, 6),
];

#[test]
fn what_was_there_before_looks_like_no_pointer() {
    let _alone = alone();
    let report = explore(&BLANKS, None, 0).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
}

#[test]
fn what_sections_take_and_free_is_theirs_and_nothing_is_lost() {
    let _alone = alone();
    let report = explore(&STEPS, None, 0).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
}

#[test]
fn what_is_taken_and_freed_outside_of_sections_is_somebodys() {
    let _alone = alone();
    let report = explore(&OUTSIDE, None, 1).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
}

/// In between it is nobody's, and may be lost.
#[test]
fn what_is_taken_again_is_not_free_by_an_older_record() {
    let _alone = alone();
    for steps in [&LINKS[..], &EARLY] {
        let report = explore(steps, None, 1).unwrap_or_else(|failure| panic!("{failure}"));
        println!("{} points, {} images", report.points, report.images);
    }
}

/// Without it a crash has to be noticed.
fn canary(steps: &[Step], part: &str, lost: u64) {
    let _alone = alone();
    let failure = explore(steps, Some(site(part)), lost).expect_err("nothing is noticed");
    println!("{part}: {}", failure.lines().next().unwrap_or_default());
}

/// One thread has written to a box, in a section that goes on; another one has seen that, and frees the box. What takes
/// its place is not written to by the first one when that goes on after a crash.
unsafe fn touch([root, place, value]: [u64; 3], seen: impl FnOnce()) {
    unsafe {
        store(__durum_ido_thread(), at::<u64>(place).add(1), value);
        seen();
        let other = &raw mut (*at::<Root>(root)).other;
        __durum_ido_pthread_mutex_unlock(other);
    }
}

unsafe extern "C" fn resume_touch(place: *const c_void, _: u32, _: *mut c_void, _: *const c_void) {
    unsafe { touch(words(place), || {}) }
}

fn traced_touch(skip: Option<Site>) -> Trace {
    recorded(
        skip,
        |root| unsafe { replace(root, 0, 24, 1) },
        |root, ()| {
            let (seen, freed) = (Barrier::new(2), Barrier::new(2));
            std::thread::scope(|scope| {
                let (words, seen, freed) = (
                    unsafe { [address(root), place(root, 0).read(), 7] },
                    &seen,
                    &freed,
                );
                scope.spawn(move || unsafe {
                    record::join_thread();
                    __durum_ido_pthread_mutex_lock(&raw mut (*at::<Root>(words[0])).other);
                    record(__durum_ido_thread(), &TOUCH_REGIONS[0], words);
                    touch(words, || {
                        seen.wait();
                        freed.wait();
                    });
                });
                seen.wait();
                for value in 0..6 {
                    unsafe { replace(root, 1 + value % 2, 24, 100 + value) };
                    if value == 0 {
                        unsafe { replace(root, 0, 0, 0) };
                    }
                }
                freed.wait();
            });
        },
    )
}

fn explore_touch(skip: Option<Site>) -> Result<Report, String> {
    let trace = traced_touch(skip);
    let mut plan = Plan::new(Rules::Lines, 4);
    plan.points_max = Some(60);
    plan.random_images = 1;
    plan.single_units_max = 2;
    plan.nested_one_in = 60;
    plan.nested_points_max = Some(4);
    explore_with_recovery(&trace, &plan, recover, |image, _| {
        let found = on_a_thread(|| {
            let root = open(image)?;
            let boxes = unsafe { [box_of(root, 1), box_of(root, 2)] };
            let touched = unsafe { place(root, 0).read() };
            close().map_err(|error| error.to_string())?;
            Ok((boxes, touched != 0))
        });
        let (boxes, is_touched) = found.inspect_err(|_| drop(close()))?;
        let known = boxes.iter().filter(|(size, _)| *size > 0);
        if known.clone().any(|(_, value)| *value < 100) {
            return Err(format!("{boxes:?}"));
        }
        let known = known.count() as u64 + u64::from(is_touched);
        match boxes_in(image)? {
            taken if taken == known => Ok(()),
            taken => Err(format!("{taken} boxes are taken, and {known} are known")),
        }
    })
    .map_err(|failure| failure.to_string())
}

#[test]
fn what_a_section_may_write_to_again_is_nobody_elses() {
    let _alone = alone();
    let report = explore_touch(None).unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
    let part = "wait for the sections that were under way";
    let failure = explore_touch(Some(site(part))).expect_err("nothing is noticed");
    println!("{part}: {}", failure.lines().next().unwrap_or_default());
}

/// Beside the others. `make test` leaves them to ci/campaigns.sh.
mod canaries {
    use super::*;

    #[test]
    fn zeros_in_what_was_taken_are_needed() {
        canary(&BLANKS, "zeros where something was taken", 0);
    }

    #[test]
    fn that_a_record_tells_what_was_taken_is_needed() {
        canary(&STEPS, "tell in a record what was taken", 0);
    }

    #[test]
    fn that_a_record_tells_what_was_freed_is_needed() {
        canary(&STEPS, "tell in a record what was freed", 0);
    }

    #[test]
    fn that_a_record_tells_what_was_taken_again_is_needed() {
        canary(&LINKS, "not free which was taken again", 1);
    }

    #[test]
    fn the_fence_after_bits_that_no_record_tells_of_is_needed() {
        canary(&OUTSIDE, "fence after bits", 1);
    }
}
