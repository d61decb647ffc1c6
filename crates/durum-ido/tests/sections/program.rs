//! A stack that is pushed to and popped from, and a row that is filled by a call, compiled by hand: each function is
//! cut where it overwrites what it has read, and goes on at each cut.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Once;

use durum_ido::abi::*;
use durum_ido::abi_locks::*;
use durum_persist::line;

#[repr(C)]
pub struct Node {
    value: u64,
    next: *mut Node,
}

#[repr(C)]
pub struct Root {
    pub lock: libc::pthread_mutex_t,
    head: *mut Node,
    count: u64,
    popped: u64,
    row: [u64; 8],
    sum: u64,
    seen: u64,
    pub other: libc::pthread_mutex_t,
    given: u64,
    taken: u64,
    pub values: [u64; 64],
    pub made: libc::pthread_mutex_t,
}

/// What is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub list: Vec<u64>,
    pub popped: u64,
    pub row: [u64; 8],
    pub sum: u64,
    /// As often as something was moved.
    pub moved: u64,
    pub word: u64,
}

impl State {
    /// # Panics
    /// Where a part of it is not like the others.
    pub unsafe fn of(root: *mut Root) -> Self {
        unsafe {
            let (mut list, mut at) = (Vec::new(), (*root).head);
            while !at.is_null() && list.len() < 100 {
                list.push((*at).value);
                at = (*at).next;
            }
            assert_eq!(list.len() as u64, (*root).count, "the count");
            assert_eq!((*root).seen, (*root).sum, "what was seen of the sum");
            assert_eq!((*root).given, (*root).taken, "what was given and taken");
            Self {
                list,
                popped: (*root).popped,
                row: (*root).row,
                sum: (*root).sum,
                moved: (*root).taken,
                word: (*root).values[1],
            }
        }
    }

    pub fn after(mut self, step: Step) -> Self {
        match step {
            Step::Push(value) => self.list.insert(0, value),
            Step::Pop => self.popped += self.list.remove(0),
            Step::Move => self.moved += 1,
            Step::Word(value) => self.word = value,
            Step::Fill(first) => {
                self.row = std::array::from_fn(|at| first + at as u64);
                self.sum = self.row.iter().sum();
            }
        }
        self
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Step {
    Push(u64),
    Pop,
    Fill(u64),
    Move,
    Word(u64),
}

pub unsafe fn run(root: *mut Root, step: Step) {
    unsafe {
        match step {
            Step::Push(value) => push(root, nv_malloc(size_of::<Node>()).cast(), value),
            Step::Pop => _ = pop(root),
            Step::Fill(first) => fill(root, first),
            Step::Move => give(root),
            Step::Word(value) => set_word(root, 1, value),
        }
    }
}

const PUSH: u64 = 0x1111_2222_3333;
const POP: u64 = 0x4444_5555_6666;
const FILL: u64 = 0x7777_8888_9999;
const ADD: u64 = 0xaaaa_bbbb_cccc;
pub const SET: u64 = 0xdddd_eeee_ffff;
const GIVE: u64 = 0x1234_5678_9abc;

pub const fn region(hash: u64, number: u64, words: u16) -> Region {
    Region {
        code: hash << 16 | number,
        line: 0,
        words,
        flags: 0,
        addresses: [0; 2],
    }
}

/// One in which a lock is let go that the section has stored under.
pub const fn handing_over(region: Region) -> Region {
    Region { flags: 4, ..region }
}

struct Functions([Function; 6]);
unsafe impl Sync for Functions {}

static PUSH_REGIONS: [Region; 2] = [region(PUSH, 1, 3), region(PUSH, 2, 3)];
static POP_REGIONS: [Region; 1] = [region(POP, 1, 5)];
static FILL_REGIONS: [Region; 6] = [
    region(FILL, 1, 2),
    region(FILL, 2, 2),
    region(FILL, 3, 2),
    region(FILL, 4, 3),
    region(FILL, 5, 2),
    region(FILL, 6, 2),
];
static ADD_REGIONS: [Region; 1] = [region(ADD, 1, 2)];
static SET_REGIONS: [Region; 2] = [region(SET, 1, 5), handing_over(region(SET, 2, 3))];

static GIVE_REGIONS: [Region; 2] = [region(GIVE, 1, 3), handing_over(region(GIVE, 2, 2))];

pub type Resume = unsafe extern "C" fn(*const c_void, u32, *mut c_void, *const c_void);

pub const fn function<const N: usize>(
    hash: u64,
    name: &'static CStr,
    resume: Resume,
    regions: &'static [Region; N],
) -> Function {
    Function {
        hash,
        name: name.as_ptr(),
        file: c"program.rs".as_ptr(),
        resume,
        code: ptr::null(),
        regions: regions.as_ptr(),
        count: N as u64,
    }
}

static FUNCTIONS: Functions = Functions([
    function(PUSH, c"push", resume_push, &PUSH_REGIONS),
    function(POP, c"pop", resume_pop, &POP_REGIONS),
    function(FILL, c"fill", resume_fill, &FILL_REGIONS),
    function(ADD, c"add", resume_add, &ADD_REGIONS),
    function(SET, c"set", resume_set, &SET_REGIONS),
    function(GIVE, c"give", resume_give, &GIVE_REGIONS),
]);

pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe { __durum_ido_register(FUNCTIONS.0.as_ptr(), 6) });
}

pub unsafe fn store(thread: *mut Thread, place: *mut u64, value: u64) {
    unsafe {
        line::store_u64(place, value);
        __durum_ido_wrote(thread, place.cast(), 8);
    }
}

/// How a function goes on: `region => by what`, with the words of the record. It returns nothing.
macro_rules! resumes {
    ($name:ident: $($region:pat => $goes_on:expr),+) => {
        unsafe extern "C" fn $name(
            place: *const c_void,
            region: u32,
            _: *mut c_void,
            _: *const c_void,
        ) {
            unsafe {
                match region {
                    $($region => $goes_on(words(place)),)+
                }
            }
        }
    };
}
pub(crate) use resumes;

pub unsafe fn words<const N: usize>(words: *const c_void) -> [u64; N] {
    std::array::from_fn(|at| unsafe { words.cast::<u64>().add(at).read() })
}

/// A record, in front of a store.
pub unsafe fn record<const N: usize>(thread: *mut Thread, region: &Region, values: [u64; N]) {
    unsafe {
        __durum_ido_record(thread, region, values.as_ptr().cast());
    }
}

pub fn at<T>(address: u64) -> *mut T {
    ptr::with_exposed_provenance_mut(address as usize)
}

pub fn address<T>(place: *mut T) -> u64 {
    place.expose_provenance() as u64
}

pub unsafe fn lock(root: *mut Root) {
    assert_eq!(
        unsafe { __durum_ido_pthread_mutex_lock(&raw mut (*root).lock) },
        0
    );
}

pub unsafe fn unlock(root: *mut Root) {
    assert_eq!(
        unsafe { __durum_ido_pthread_mutex_unlock(&raw mut (*root).lock) },
        0
    );
}

pub unsafe fn push(root: *mut Root, node: *mut Node, value: u64) {
    unsafe {
        lock(root);
        let words = [address(root), address(node), value];
        record(__durum_ido_thread(), &PUSH_REGIONS[0], words);
        push_node(words);
    }
}

unsafe fn push_node([root, node, value]: [u64; 3]) {
    unsafe {
        let (thread, root, node) = (__durum_ido_thread(), at::<Root>(root), at::<Node>(node));
        store(thread, &raw mut (*node).value, value);
        store(
            thread,
            (&raw mut (*node).next).cast(),
            address((*root).head),
        );
        let words = [address(root), address(node), (*root).count];
        record(thread, &PUSH_REGIONS[1], words);
        push_link(words);
    }
}

unsafe fn push_link([root, node, count]: [u64; 3]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at::<Root>(root));
        store(thread, (&raw mut (*root).head).cast(), node);
        store(thread, &raw mut (*root).count, count + 1);
        unlock(root);
    }
}

/// One region alone, as where what is overwritten was read in front of its record.
pub unsafe fn push_in_one(root: *mut Root, node: *mut Node, value: u64) {
    unsafe {
        lock(root);
        let thread = __durum_ido_thread();
        record(
            thread,
            &PUSH_REGIONS[0],
            [address(root), address(node), value],
        );
        store(thread, &raw mut (*node).value, value);
        store(thread, (&raw mut (*node).next).cast(), 0);
        store(thread, (&raw mut (*root).head).cast(), address(node));
        unlock(root);
    }
}

resumes!(resume_push: 1 => push_node, _ => push_link);

pub unsafe fn pop(root: *mut Root) -> u64 {
    unsafe {
        lock(root);
        let (thread, head) = (__durum_ido_thread(), (*root).head);
        if head.is_null() {
            unlock(root);
            return 0;
        }
        let (value, next) = ((*head).value, address((*head).next));
        let words = [address(root), next, (*root).count, (*root).popped, value];
        record(thread, &POP_REGIONS[0], words);
        pop_node(words);
        nv_free(head.cast());
        value
    }
}

unsafe fn pop_node([root, next, count, popped, value]: [u64; 5]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at::<Root>(root));
        store(thread, (&raw mut (*root).head).cast(), next);
        store(thread, &raw mut (*root).count, count - 1);
        store(thread, &raw mut (*root).popped, popped + value);
        unlock(root);
    }
}

resumes!(resume_pop: _ => pop_node);

/// A local that has an address, and two calls in the section. The second one would overwrite the frame that the record
/// of the first one leads to.
unsafe fn fill(root: *mut Root, first: u64) {
    unsafe {
        let thread = __durum_ido_thread();
        let local: *mut u64 = __durum_ido_locals(thread, 64).cast();
        for index in 0..8 {
            store(thread, local.add(index), first + index as u64);
        }
        lock(root);
        let words = [address(root), address(local)];
        call_add(words, &FILL_REGIONS[5], &FILL_REGIONS[0]);
        fill_again(words);
        __durum_ido_leave(thread, local.cast());
    }
}

/// With a frame that goes on at `region`, and a record of `call`, if there has to be one.
unsafe fn call_add(words: [u64; 2], call: &Region, region: &Region) -> u64 {
    unsafe {
        let (thread, [root, local]) = (__durum_ido_thread(), words);
        let frame = __durum_ido_call(thread, call, region, words.as_ptr().cast());
        let sum = add(at(root), at(local));
        __durum_ido_returned(thread, frame);
        sum
    }
}

unsafe fn fill_again(words: [u64; 2]) {
    unsafe {
        let sum = call_add(words, &FILL_REGIONS[1], &FILL_REGIONS[2]);
        fill_record(words, sum);
    }
}

unsafe fn fill_record([root, local]: [u64; 2], sum: u64) {
    unsafe {
        record(__durum_ido_thread(), &FILL_REGIONS[3], [root, local, sum]);
        fill_local([root, local, sum]);
    }
}

unsafe fn fill_local([root, local, sum]: [u64; 3]) {
    unsafe {
        let thread = __durum_ido_thread();
        store(thread, &raw mut (*at::<Root>(root)).sum, sum);
        store(thread, at(local), sum);
        record(thread, &FILL_REGIONS[4], [root, local]);
        fill_seen([root, local]);
    }
}

unsafe fn fill_seen([root, local]: [u64; 2]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at::<Root>(root));
        store(thread, &raw mut (*root).seen, at::<u64>(local).read());
        unlock(root);
    }
}

unsafe extern "C" fn resume_fill(
    place: *const c_void,
    region: u32,
    result: *mut c_void,
    _: *const c_void,
) {
    unsafe {
        match region {
            1 | 2 => fill_again(words(place)),
            3 => fill_record(words(place), result.cast::<u64>().read()),
            4 => fill_local(words(place)),
            5 => fill_seen(words(place)),
            _ => panic!("the first call overwrites nothing, and has no record"),
        }
    }
}

unsafe fn add(root: *mut Root, row: *mut u64) -> u64 {
    unsafe {
        let words = [address(root), address(row)];
        record(__durum_ido_thread(), &ADD_REGIONS[0], words);
        add_row(words)
    }
}

unsafe fn add_row([root, row]: [u64; 2]) -> u64 {
    unsafe {
        let (thread, root, row) = (__durum_ido_thread(), at::<Root>(root), at::<u64>(row));
        let mut sum = 0;
        for index in 0..8 {
            let value = row.add(index).read();
            store(
                thread,
                (&raw mut (*root).row).cast::<u64>().add(index),
                value,
            );
            sum += value;
        }
        sum
    }
}

unsafe extern "C" fn resume_add(
    place: *const c_void,
    _: u32,
    result: *mut c_void,
    _: *const c_void,
) {
    unsafe { result.cast::<u64>().write(add_row(words(place))) }
}

/// What guards a section: a lock of either kind, or so many regions of `durum_durable_begin`.
#[derive(Clone, Copy)]
pub enum Lock {
    Mutex(*mut libc::pthread_mutex_t),
    ReadWrite(*mut libc::pthread_rwlock_t),
    None(u64),
    /// A mutex that is held three times.
    Recursive(*mut libc::pthread_mutex_t),
}

/// One word, as where the value of a map is replaced.
pub unsafe fn set(root: *mut Root, index: u64, value: u64) {
    unsafe {
        lock(root);
        let lock = Lock::Mutex(&raw mut (*root).lock);
        set_value(begin_set(root, lock, index, value));
    }
}

/// What comes in front of the store: the lock is held.
pub unsafe fn begin_set(root: *mut Root, lock: Lock, index: u64, value: u64) -> [u64; 5] {
    let (lock, kind) = match lock {
        Lock::Mutex(lock) => (address(lock), 0),
        Lock::ReadWrite(lock) => (address(lock), 1),
        Lock::None(regions) => (regions, 2),
        Lock::Recursive(lock) => (address(lock), 3),
    };
    let words = [address(root), index, value, lock, kind];
    unsafe { record(__durum_ido_thread(), &SET_REGIONS[0], words) };
    words
}

pub unsafe fn set_value([root, index, value, lock, kind]: [u64; 5]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at::<Root>(root));
        let values = (&raw mut (*root).values).cast::<u64>();
        store(thread, values.add(index as usize), value);
        match kind {
            0 => _ = __durum_ido_pthread_mutex_unlock(at(lock)),
            1 => _ = __durum_ido_pthread_rwlock_unlock(at(lock)),
            3 => let_go([address(root), lock, 0]),
            _ => (0..lock).for_each(|_| __durum_ido_durum_durable_end()),
        }
    }
}

/// Three times, with a record in front of each but the last one.
unsafe fn let_go([root, lock, times]: [u64; 3]) {
    unsafe {
        let (thread, region) = (__durum_ido_thread(), &SET_REGIONS[1]);
        let words = [root, lock, times];
        __durum_ido_record_release(thread, region, words.as_ptr().cast(), at(lock));
        let_go_on(words);
    }
}

unsafe fn let_go_on([root, lock, times]: [u64; 3]) {
    unsafe {
        let depth = __durum_ido_thread().cast::<u32>().read();
        assert_eq!(u64::from(depth), 3 - times);
        assert_eq!(__durum_ido_pthread_mutex_unlock(at(lock)), 0);
        if times < 2 {
            let_go([root, lock, times + 1]);
        }
    }
}

resumes!(resume_set: 1 => set_value, _ => let_go_on);

/// Writes the value of a node outside of sections. Its address.
pub unsafe fn own(node: *mut Node, value: u64) -> u64 {
    unsafe {
        line::store_u64(&raw mut (*node).value, value);
        durum_own(node.cast(), size_of::<Node>());
        address(node)
    }
}

/// The value of a node at this address.
pub unsafe fn value_of(node: u64) -> u64 {
    unsafe { (*at::<Node>(node)).value }
}

pub unsafe fn node() -> *mut Node {
    nv_malloc(size_of::<Node>()).cast()
}

/// Under two locks, of which the one that was taken first goes first.
unsafe fn give(root: *mut Root) {
    unsafe {
        lock(root);
        __durum_ido_pthread_mutex_lock(&raw mut (*root).other);
        let words = [address(root), (*root).given, (*root).taken];
        record(__durum_ido_thread(), &GIVE_REGIONS[0], words);
        give_one(words);
    }
}

unsafe fn give_one([root, given, taken]: [u64; 3]) {
    unsafe {
        let thread = __durum_ido_thread();
        store(thread, &raw mut (*at::<Root>(root)).given, given + 1);
        let lock = (&raw const (*at::<Root>(root)).lock).cast();
        let words = [root, taken];
        __durum_ido_record_release(thread, &GIVE_REGIONS[1], words.as_ptr().cast(), lock);
        take_one(words);
    }
}

unsafe fn take_one([root, taken]: [u64; 2]) {
    unsafe {
        let (thread, root) = (__durum_ido_thread(), at::<Root>(root));
        unlock(root);
        record(thread, &GIVE_REGIONS[1], [address(root), taken]);
        store(thread, &raw mut (*root).taken, taken + 1);
        __durum_ido_pthread_mutex_unlock(&raw mut (*root).other);
    }
}

resumes!(resume_give: 1 => give_one, _ => take_one);

/// One word that nothing else is stored with: no record tells of it.
pub unsafe fn set_word(root: *mut Root, index: usize, value: u64) {
    unsafe {
        lock(root);
        let thread = __durum_ido_thread();
        // What it would need to go on, if it had one.
        let words = [0_u64; 5];
        __durum_ido_record_word(thread, &SET_REGIONS[0], words.as_ptr().cast());
        store(
            thread,
            (&raw mut (*root).values).cast::<u64>().add(index),
            value,
        );
        unlock(root);
    }
}
