//! A heap is made anew under other types: pointers of all kinds lead to where things are then, counts are those of the
//! pointers that are there, and what nothing leads to any more goes when the heap is opened.

use std::ffi::CStr;
use std::path::Path;
use std::ptr::null_mut;

use durum::Engine;
use durum_format::nvl::HEAP_TYPE;
use durum_format::types::Descriptor;
use durum_nvl::migrate::{ChangedField, ChangedType, HeapMigration, Origin, migrate};
use durum_nvl::{Handle, Heap, HeapOptions};

use crate::support::*;

mod audit;
mod crashes;
mod damaged;
mod killed;

/// `struct task { long number; int x; nvl struct task *next, *other; nvl int *inside; nvl struct task *nvl_wp back; }`
#[repr(C)]
struct Task {
    number: i64,
    x: i32,
    next: *mut Task,
    other: *mut Task,
    inside: *mut i32,
    back: usize,
}

/// The same with a priority before all else, another name, and `number` behind; `other` is gone.
#[repr(C)]
struct Job {
    priority: u32,
    x: i32,
    next: *mut Job,
    inside: *mut i32,
    back: usize,
    id: i64,
}

const TASK: &CStr = c"nvl1 48 8 00000000000000aa\nstruct \"task\"(48,8){0:\"number\":i64;8:\"x\":i32;16:\"next\":*0;24:\"other\":*0;32:\"inside\":*1;40:\"back\":~0;}\ni32\n";
const JOB: &CStr = c"nvl1 40 8 00000000000000dd\nstruct \"job\"(40,8){0:\"priority\":u32;4:\"x\":i32;8:\"next\":*0;16:\"inside\":*1;24:\"back\":~0;32:\"id\":i64;}\ni32\n";
const INT: &CStr = c"nvl1 4 4 00000000000000ee\ni32\n";
/// Tasks in a row.
const ROW: usize = 3;

fn text(descriptor: &CStr) -> &str {
    descriptor.to_str().unwrap()
}

fn is_job<'m>() -> HeapMigration<'m> {
    let field = |name, from| ChangedField {
        ty: "task",
        name,
        from,
    };
    HeapMigration {
        root: text(JOB),
        types: vec![ChangedType {
            name: Some("task"),
            was: None,
            now: text(JOB),
            make: None,
        }],
        fields: vec![
            field("priority", Origin::Value("3")),
            field("id", Origin::Field("number")),
            field("other", Origin::Nowhere),
        ],
    }
}

unsafe fn task(heap: *mut Handle, count: usize, number: i64) -> *mut Task {
    unsafe {
        let tasks: *mut Task = __nvl_alloc(heap, count, 48, TASK.as_ptr()).cast();
        for at in 0..count {
            (*tasks.add(at)).number = number + at as i64;
            (*tasks.add(at)).x = 100 + number as i32 + at as i32;
        }
        tasks
    }
}

unsafe fn point<T>(slot: *mut usize, target: *mut T) {
    unsafe { __nvl_store_weak(slot.cast(), target.cast()) };
}

unsafe fn weak<T>(slot: *const usize) -> *mut T {
    unsafe { __nvl_load_weak(slot.cast()).cast() }
}

/// Two tasks, then three in a row, with pointers of all kinds, into the middle and right behind; a task to which only
/// `other` leads, and one that is gone while a weak pointer leads to it.
unsafe fn fill(heap: *mut Handle) {
    unsafe {
        let (first, second, row) = (task(heap, 1, 0), task(heap, 1, 1), task(heap, ROW, 2));
        store(&raw mut (*first).next, second);
        __nvl_set_root(heap, first.cast(), TASK.as_ptr());
        store(&raw mut (*second).next, row);
        store(&raw mut (*row).next, row.add(1));
        store(&raw mut (*row.add(1)).next, row.add(2));
        store(&raw mut (*row.add(2)).next, row.add(ROW));
        let (lost, gone) = (task(heap, 1, 10), task(heap, 1, 11));
        store(&raw mut (*first).other, lost);
        store(&raw mut (*lost).next, second);
        store(&raw mut (*lost).other, gone);
        store(&raw mut (*first).inside, &raw mut (*second).x);
        store(&raw mut (*second).inside, &raw mut (*row.add(2)).x);
        // Forgotten later: what else leads to the second counts on.
        store(&raw mut (*row.add(1)).other, second);
        let numbers: *mut i32 = __nvl_alloc(heap, 10, 4, INT.as_ptr()).cast();
        (0..10).for_each(|at| *numbers.add(at) = at as i32);
        store(&raw mut (*row).inside, numbers.add(10));
        let pinned: *mut i32 = __nvl_alloc_pinned(heap, 4, 4, INT.as_ptr()).cast();
        store(&raw mut (*row.add(1)).inside, pinned.add(1));
        point(&raw mut (*first).back, second);
        point(&raw mut (*second).back, row.add(1));
        point(&raw mut (*row).back, row.add(1));
        point(&raw mut (*row.add(1)).back, row.add(ROW));
        point(&raw mut (*row.add(2)).back, gone);
        point(&raw mut (*lost).back, lost);
        // The object is freed when the heap is opened, and the weak pointer is null from then on.
        store(&raw mut (*lost).other, null_mut());
    }
}

unsafe fn root(heap: *mut Handle) -> *mut Job {
    unsafe { __nvl_get_root(heap, JOB.as_ptr()).cast() }
}

/// What [`fill`] has made, under the new type.
unsafe fn is_new(heap: *mut Handle) -> Result<(), String> {
    unsafe {
        let first = root(heap);
        let second = (*first).next;
        let row = (*second).next;
        let jobs = [first, second, row, row.add(1), row.add(2)];
        for (number, job) in jobs.into_iter().enumerate() {
            let told = ((*job).priority, (*job).id, (*job).x);
            if told != (3, number as i64, 100 + number as i32) {
                return Err(format!("job {number} is {told:?}"));
            }
        }
        let same = |what: &str, found: usize, wanted: usize| match found == wanted {
            true => Ok(()),
            false => Err(format!("{what} is {found:#x}, not {wanted:#x}")),
        };
        same("the second's next", (*row).next.addr(), row.add(1).addr())?;
        let end = (*row.add(2)).next.addr();
        same("a pointer behind a row", end, row.add(ROW).addr())?;
        let to_x = (*first).inside.addr();
        same("a pointer into a job", to_x, (&raw mut (*second).x).addr())?;
        let to_x = (*second).inside.addr();
        same("one into the row", to_x, (&raw mut (*row.add(2)).x).addr())?;
        let numbers = (*row).inside.sub(10);
        for at in 0..10 {
            same("a number", *numbers.add(at) as usize, at)?;
        }
        let back = |job: *mut Job| weak::<Job>(&raw const (*job).back).addr();
        same("the first's back", back(first), second.addr())?;
        same("the second's back", back(second), row.add(1).addr())?;
        same("the row's back", back(row), row.add(1).addr())?;
        same("a weak end", back(row.add(1)), row.add(ROW).addr())?;
        same("one to what is gone", back(row.add(2)), 0)?;
        let pinned = (*row.add(1)).inside.sub(1);
        for (what, header, count, elements) in [
            ("the root", header(first), 1, 1),
            // `lost`, which led here, too, is gone; `inside` does.
            ("the second", header(second), 2, 1),
            ("the row", header(row), 5, ROW as u64),
            ("numbers", header(numbers), 1, 10),
            ("what is pinned", header(pinned), (1 << 62) + 1, 4),
        ] {
            if header != (count, 0, elements) {
                return Err(format!("{what} says {header:?}, not {count}"));
            }
        }
        Ok(())
    }
}

/// What it was.
unsafe fn is_old(heap: *mut Handle) -> Result<(), String> {
    unsafe {
        let first: *mut Task = __nvl_get_root(heap, TASK.as_ptr()).cast();
        let (second, lost) = ((*first).next, (*first).other);
        let back = weak::<Task>(&raw const (*lost).back);
        let told = ((*second).number, (*lost).number, back == lost);
        match told == (1, 10, true) && header(second) == (4, 0, 1) {
            true => Ok(()),
            false => Err(format!("{told:?}, {:?}", header(second))),
        }
    }
}

/// The root object, two jobs, a row, two rows of numbers, and proxies: to the second, the row's second and its end, and
/// to what is gone.
const OBJECTS: u64 = 10;

#[test]
fn a_heap_follows_its_program() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        unsafe { fill(place.heap) };
        place.reopen();
        unsafe { is_old(place.heap).unwrap() };
        let busy = migrate(&place.path(), is_job(), false).unwrap_err();
        assert_eq!(busy.errno(), libc::EBUSY, "{busy}");
        place.close();
        let plan = migrate(&place.path(), is_job(), true).unwrap();
        assert_eq!(plan.objects, OBJECTS + 2, "the lost one, and its proxy");
        let done = migrate(&place.path(), is_job(), false).unwrap();
        assert_eq!((done.objects, done.bytes), (plan.objects, plan.bytes));
        // What nothing leads to is on the zero list, by which it is reachable; its proxy by it.
        assert_eq!((objects(&place.path()), leaks(&place.path())), (12, 0));
        place.heap = Heap::open(&place.path(), &place.options).unwrap();
        unsafe { is_new(place.heap).unwrap() };
        place.close();
        assert_eq!((objects(&place.path()), leaks(&place.path())), (OBJECTS, 0));
        // It is of use, and what it is it can be made anew.
        place.heap = Heap::open(&place.path(), &place.options).unwrap();
        unsafe {
            let first = root(place.heap);
            store(&raw mut (*first).next, null_mut());
        }
        place.reopen();
        let count = unsafe { header(root(place.heap)) };
        assert_eq!(count, (1, 0, 1));
        place.close();
        // The root, the job, the second and what it leads to: `inside` keeps that.
        assert_eq!((objects(&place.path()), leaks(&place.path())), (OBJECTS, 0));
    }
}

/// A crash has left what nothing leads to, on the list or fresh.
#[test]
fn what_was_waiting_to_be_freed_goes() {
    for engine in ENGINES {
        let mut place = Place::new(engine);
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let image = dir.path().join("heap");
        unsafe {
            fill(place.heap);
            // Three of them, one of which leads to the next.
            let fresh = [20, 21, 22].map(|number| task(place.heap, 1, number));
            store(&raw mut (*fresh[0]).next, fresh[1]);
            point(&raw mut (*fresh[2]).back, fresh[0]);
            let first: *mut Task = __nvl_get_root(place.heap, TASK.as_ptr()).cast();
            // Durable with all that came before.
            store(&raw mut (*first).other, null_mut());
            copy(&place.path(), &image);
        }
        place.close();
        let done = migrate(&image, is_job(), false).unwrap();
        assert!(done.objects > OBJECTS + 2, "{done:?}");
        assert_eq!(leaks(&image), 0);
        let heap = Heap::open(&image, &place.options).unwrap();
        unsafe {
            is_new(heap).unwrap();
            nvl_close(heap);
        }
        assert_eq!((objects(&image), leaks(&image)), (OBJECTS, 0));
        place.heap = Heap::open(&place.path(), &place.options).unwrap();
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => copy(&entry.path(), &to),
            kind if kind.is_file() => drop(std::fs::copy(entry.path(), to).unwrap()),
            _ => {}
        }
    }
}

#[test]
fn a_function_makes_structs() {
    let mut place = Place::new(Engine::Shadow);
    unsafe { fill(place.heap) };
    place.reopen();
    place.close();
    let made = |address: usize, new: &mut [u8]| {
        let old = std::ptr::with_exposed_provenance::<Task>(address);
        // SAFETY: as a migration promises.
        let old = unsafe { old.read() };
        if old.number == 1000 {
            return Err("not this one".to_owned());
        }
        let words = [3, 0, 0, 0, old.number as u64];
        for (place, word) in new.chunks_exact_mut(8).zip(words) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        new[4..8].copy_from_slice(&old.x.to_le_bytes());
        new[8..16].copy_from_slice(&old.next.addr().to_le_bytes());
        new[16..24].copy_from_slice(&old.inside.addr().to_le_bytes());
        new[24..32].copy_from_slice(&old.back.to_le_bytes());
        Ok(())
    };
    // The types as this program declares them, whatever the heap calls them.
    let was = text(TASK).replace("\"task\"", "\"old_task\"");
    let by = |was| HeapMigration {
        root: text(JOB),
        types: vec![ChangedType {
            name: Some("task"),
            was: Some(was),
            now: text(JOB),
            make: Some(Box::new(made)),
        }],
        fields: vec![],
    };
    let refused = migrate(&place.path(), by(text(JOB)), false).unwrap_err();
    let part = "its function takes another type than the pool has, of the name task";
    assert!(refused.to_string().contains(part), "{refused}");
    // One that forgets a pointer is told.
    let refused = migrate(&place.path(), by(&was), false).unwrap_err();
    let part = "its function forgets a pointer that owns something";
    assert!(refused.to_string().contains(part), "{refused}");
    unsafe {
        let heap = Heap::open(&place.path(), &place.options).unwrap();
        is_old(heap).unwrap();
        let first: *mut Task = __nvl_get_root(heap, TASK.as_ptr()).cast();
        store(&raw mut (*first).other, null_mut());
        let row = (*(*first).next).next;
        store(&raw mut (*row.add(1)).other, null_mut());
        nvl_close(heap);
    }
    migrate(&place.path(), by(&was), false).unwrap();
    place.heap = Heap::open(&place.path(), &place.options).unwrap();
    unsafe { is_new(place.heap).unwrap() };
}

#[test]
fn what_stands_in_the_way_is_told_at_once() {
    let mut place = Place::new(Engine::Shadow);
    unsafe { fill(place.heap) };
    place.reopen();
    place.close();
    let told = |how| migrate(&place.path(), how, true).unwrap_err().to_string();
    let plain = |fields| HeapMigration {
        root: text(JOB),
        types: vec![],
        fields,
    };
    let refused = told(plain(vec![]));
    for part in [
        "task: nvl task, now nvl job, of which nobody says that it was nvl task",
        "task.priority: it is new, and has no default",
        "task.id: it is new, and has no default",
    ] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    // What objects hold is told once the types are in order, in the same words where nothing was planned.
    let mut how = is_job();
    how.fields.pop();
    let refused = migrate(&place.path(), how, false).unwrap_err().to_string();
    let part = "task.other: it goes, and has pointers: what they lead to would be lost, or have to be reached otherwise; say that it may be forgotten, if so (2 objects)";
    assert!(refused.contains(part), "{refused}");
    // A pointer into what is gone, strong or weak.
    let no_x = text(TASK).replace("8:\"x\":i32;", "");
    let mut how = plain(vec![]);
    how.root = &no_x;
    let refused = told(how);
    let part = "task.x: a pointer leads to it, and it is gone (that of a task) (2 objects)";
    assert!(refused.contains(part), "{refused}");
    // Weak pointers to one place of two types have one proxy: it cannot lead to two places.
    let heap = Heap::open(&place.path(), &place.options).unwrap();
    unsafe { is_old(heap).unwrap() };
    unsafe { nvl_close(heap) };
    let typed = text(TASK).replace("\"back\":~0", "\"back\":~2").replace(
        "0:\"number\":i64;8:\"x\":i32;",
        "0:\"x\":i32;8:\"number\":i64;",
    ) + "i64\n";
    let mut how = plain(vec![]);
    how.root = &typed;
    let refused = told(how);
    let part =
        "task: a weak pointer of a task leads to a part of it that begins where another one begins";
    assert!(refused.contains(part), "{refused}");
    place.heap = Heap::open(&place.path(), &place.options).unwrap();
    unsafe { is_old(place.heap).unwrap() };
}

/// A pointer to the first field of a struct, and one to the struct, lead to one place, and to two afterwards.
#[test]
fn what_begins_at_one_place_is_told_apart_by_its_type() {
    let was =
        c"nvl1 24 8 1\nstruct \"cell\"(24,8){0:\"x\":i32;8:\"inside\":*1;16:\"whole\":*0;}\ni32\n";
    let is = c"nvl1 32 8 2\nstruct \"cell\"(32,8){0:\"more\":i64;8:\"x\":i32;16:\"inside\":*1;24:\"whole\":*0;}\ni32\n";
    let mut place = Place::new(Engine::Shadow);
    unsafe {
        let cell: *mut u64 = __nvl_alloc(place.heap, 1, 24, was.as_ptr()).cast();
        *cell = 5;
        __nvl_set_root(place.heap, cell.cast(), was.as_ptr());
        __nvl_store_ptr(cell.add(1).cast(), cell.cast());
        __nvl_store_ptr(cell.add(2).cast(), cell.cast());
    }
    place.close();
    let how = HeapMigration {
        root: text(is),
        types: vec![],
        fields: vec![ChangedField {
            ty: "cell",
            name: "more",
            from: Origin::Value("-1"),
        }],
    };
    migrate(&place.path(), how, false).unwrap();
    place.heap = Heap::open(&place.path(), &place.options).unwrap();
    unsafe {
        let cell: *mut u64 = __nvl_get_root(place.heap, is.as_ptr()).cast();
        assert_eq!((*cell, *cell.add(1)), (u64::MAX, 5));
        let pointers = (*cell.add(2) as usize, *cell.add(3) as usize);
        assert_eq!(pointers, (cell.add(1).addr(), cell.addr()));
        assert_eq!(header(cell), (3, 0, 1));
    }
}

/// Weak pointers that are forgotten count no more: their proxies go with what they led to.
#[test]
fn a_proxy_without_weak_pointers_goes_with_its_target() {
    let mut place = Place::new(Engine::Shadow);
    unsafe {
        let (first, second) = (task(place.heap, 1, 0), task(place.heap, 1, 1));
        store(&raw mut (*first).next, second);
        __nvl_set_root(place.heap, first.cast(), TASK.as_ptr());
        point(&raw mut (*first).back, second);
        point(&raw mut (*second).back, second);
    }
    place.close();
    let no_back = text(TASK)
        .replace("40:\"back\":~0;", "")
        .replace("aa", "ab");
    let forgets = HeapMigration {
        root: &no_back,
        types: vec![],
        fields: vec![ChangedField {
            ty: "task",
            name: "back",
            from: Origin::Nowhere,
        }],
    };
    migrate(&place.path(), forgets, false).unwrap();
    assert_eq!((objects(&place.path()), leaks(&place.path())), (4, 0));
    place.heap = Heap::open(&place.path(), &place.options).unwrap();
    place.set_root(null_mut());
    place.close();
    assert_eq!((objects(&place.path()), leaks(&place.path())), (1, 0));
    place.heap = Heap::open(&place.path(), &place.options).unwrap();
}

/// An array's type has the name of what is in it, and a struct in a type that the program does not name stays nothing
/// that it has otherwise.
#[test]
fn arrays_of_structs_that_change_have_to_be_named() {
    let array = |element: &str, size: u32| format!("nvl1 {size} 8 {size:x}\n[{element};2]\n");
    let was = "struct \"pair\"(16,8){0:\"a\":i64;8:\"b\":i64;}";
    let is = "struct \"pair\"(24,8){0:\"c\":i64;8:\"a\":i64;16:\"b\":i64;}";
    let mut place = Place::new(Engine::Shadow);
    let text = std::ffi::CString::new(array(was, 32)).unwrap();
    unsafe {
        let pairs: *mut i64 = __nvl_alloc(place.heap, 2, 32, text.as_ptr()).cast();
        (0..8).for_each(|at| *pairs.add(at) = at as i64);
        __nvl_set_root(place.heap, pairs.cast(), text.as_ptr());
        let held: *mut *mut i64 =
            __nvl_alloc(place.heap, 1, 8, c"nvl1 8 8 5\n*1\ni64\n".as_ptr()).cast();
        store(held, pairs.add(4));
        __nvl_set_root(place.heap, held.cast(), c"nvl1 8 8 5\n*1\ni64\n".as_ptr());
    }
    place.close();
    let is = array(is, 48);
    let pointer = "nvl1 8 8 6\n*1\nstruct \"pair\"(24,8){0:\"c\":i64;8:\"a\":i64;16:\"b\":i64;}\n";
    let by = |types: Vec<ChangedType<'static>>| HeapMigration {
        root: pointer,
        types,
        fields: vec![ChangedField {
            ty: "pair",
            name: "c",
            from: Origin::Value("7"),
        }],
    };
    let refused = migrate(&place.path(), by(vec![]), true)
        .unwrap_err()
        .to_string();
    let part = "the program has another pair, and does not say that it allocates this; name it among its types";
    assert!(refused.contains(part), "{refused}");
    let is: &'static str = is.leak();
    let named = ChangedType {
        name: None,
        was: None,
        now: is,
        make: None,
    };
    migrate(&place.path(), by(vec![named]), false).unwrap();
    place.heap = Heap::open(&place.path(), &place.options).unwrap();
    let pointer = std::ffi::CString::new(pointer).unwrap();
    unsafe {
        let held: *mut *mut i64 = __nvl_get_root(place.heap, pointer.as_ptr()).cast();
        let third = *held;
        let told: Vec<i64> = (-6..6).map(|at| *third.offset(at)).collect();
        assert_eq!(told, [7, 0, 1, 7, 2, 3, 7, 4, 5, 7, 6, 7]);
    }
}
