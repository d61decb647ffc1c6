//! Heaps that no program has made: what the runtime would never store is refused, or not believed, by migrations and
//! their plans alike.

use std::collections::BTreeMap;

use durum::{Pool, PoolOptions, Store, StoreOptions, Tx};

use super::audit::{audit, found};
use super::*;

/// Changes a heap that is closed past the runtime.
fn changed<R>(path: &Path, change: impl Fn(&Pool, &Tx) -> durum::Result<R>) -> R {
    let store = Store::open(path, StoreOptions::new()).unwrap();
    let pool = store.open_pool("heap", PoolOptions::new()).unwrap();
    let changed = pool.transaction(|tx| change(&pool, tx)).unwrap();
    drop(pool);
    store.close().unwrap();
    changed
}

/// Puts a word into it; gives the one that was there.
fn put(path: &Path, address: usize, word: u64) -> u64 {
    changed(path, |_, tx| {
        let place = std::ptr::with_exposed_provenance_mut::<u64>(address);
        // SAFETY: the heap is mapped where it was when the address was taken, and nobody else uses it.
        unsafe {
            tx.add_bytes(place.cast(), 8, Default::default())?;
            Ok(place.replace(word))
        }
    })
}

/// A heap of [`fill`], closed, and its first task, the second and the numbers, by their addresses.
fn closed() -> (Place, usize, usize, usize) {
    let mut place = Place::new(Engine::Shadow);
    unsafe { fill(place.heap) };
    let first: *mut Task = unsafe { __nvl_get_root(place.heap, TASK.as_ptr()).cast() };
    let (second, numbers) = unsafe {
        let row = (*(*first).next).next;
        ((*first).next, (*row).inside.sub(10))
    };
    let found = (
        first.expose_provenance(),
        second.expose_provenance(),
        numbers.expose_provenance(),
    );
    place.close();
    (place, found.0, found.1, found.2)
}

fn refused(path: &Path) -> String {
    let [plan, done] = [true, false].map(|is_plan| {
        let refused = migrate(path, is_job(), is_plan).unwrap_err();
        refused.to_string()
    });
    assert_eq!(plan, done);
    plan
}

#[test]
fn a_pointer_that_leads_out_of_its_heap_is_refused_by_its_way_and_the_pools_name() {
    let (mut place, first, second, numbers) = closed();
    let path = place.path();
    let opened = Store::open(&path, StoreOptions::new()).unwrap();
    let other = opened.create_pool("other", PoolOptions::new()).unwrap();
    let heap = Descriptor::parse(HEAP_TYPE).unwrap().id();
    let elsewhere = other.root_bytes(heap, 32, 8).unwrap().addr() as u64;
    drop(other);
    opened.close().unwrap();
    let at = |object: usize, field: usize| object + field;
    let next = at(second, std::mem::offset_of!(Task, next));
    let back = at(second, std::mem::offset_of!(Task, back));
    let to_other = "it leads out of the heap, into pool \"other\": the heap is damaged";
    let proxy = u64::MAX;
    for (place, word, told) in [
        (next, elsewhere, format!("job.next: {to_other}")),
        (back, elsewhere, format!("job.back: {to_other}")),
        (
            next,
            0x10,
            "job.next: it leads out of the heap, to nothing of the store".to_owned(),
        ),
        (
            back,
            first as u64,
            "job.back: it leads to no proxy: the heap is damaged".to_owned(),
        ),
        // Into a header, behind the end of elements where the allocation has more room, and to a proxy.
        (
            next,
            numbers as u64 - 24,
            "job.next: it leads to no element of an allocation".to_owned(),
        ),
        (
            next,
            numbers as u64 + 44,
            "job.next: it leads to no element of an allocation".to_owned(),
        ),
        (
            next,
            proxy,
            "job.next: it leads to no element of an allocation".to_owned(),
        ),
    ] {
        let word = match word == proxy {
            true => {
                let all = found(&path).unwrap();
                all.iter().find(|it| it.name == "nvl weak").unwrap().address
            }
            false => word,
        };
        let was = put(&path, place, word);
        let refused = refused(&path);
        assert!(refused.contains(&told), "{told}: {refused}");
        let cure = match place == back {
            // To be counted off it would have to lead to a proxy.
            true => "by the runtime; say that the field may be forgotten, or go back to a copy",
            false => "by the runtime; set it to null before, or say that",
        };
        assert!(refused.contains(cure), "{refused}");
        assert!(refused.contains("(1 object)"), "{refused}");
        put(&path, place, was);
    }
    // The runtime's own pointers: the root, and what a proxy leads to.
    let all = found(&path).unwrap();
    let root = all[0].address as usize + 8;
    let target = all.iter().find(|it| it.name == "nvl weak").unwrap().address as usize;
    for (place, told) in [(root, "heap.root: "), (target, "weak.target: ")] {
        let was = put(&path, place, elsewhere);
        let refused = refused(&path);
        assert!(refused.contains(&format!("{told}{to_other}")), "{refused}");
        assert!(
            refused.contains("go back to a copy of the heap"),
            "{refused}"
        );
        put(&path, place, was);
    }
    // One proxy would outlive what it stands for.
    let was = put(&path, target, numbers as u64);
    let told = refused(&path);
    let part = "the list of proxies for weak pointers to it has one for another allocation";
    assert!(told.contains(part), "{told}");
    put(&path, target, was);
    let list = second - 48 + 24;
    let was = put(&path, list, 0);
    let told = refused(&path);
    let part = "the heap: not each of the 4 proxies for weak pointers hangs once in the list";
    assert!(told.contains(part), "{told}");
    put(&path, list, was);
    // The program that the heap is of can put it right, if the pointer is a strong one.
    let word = put(&path, next, elsewhere);
    unsafe {
        let heap = Heap::open(&path, &place.options).unwrap();
        let slot = std::ptr::with_exposed_provenance_mut::<*mut Task>(next);
        store(slot, std::ptr::null_mut());
        nvl_close(heap);
    }
    put(&path, next, word);
    // What is forgotten leads nowhere any more.
    let other = first + std::mem::offset_of!(Task, other);
    put(&path, other, elsewhere);
    migrate(&path, is_job(), false).unwrap();
    place.heap = Heap::open(&path, &place.options).unwrap();
    unsafe { is_new(place.heap).unwrap() };
}

/// Counts and links are those that the pointers ask for, whatever was there.
#[test]
fn links_and_counts_that_were_there_are_not_believed() {
    let (mut place, first, second, _) = closed();
    let path = place.path();
    let header = second - 48;
    // next, previous, strong, fresh and listed
    for (at, word) in [(8, first), (16, first), (32, 77), (40, 3)] {
        put(&path, header + at, word as u64);
    }
    // Three allocations: the one that only a forgotten pointer leads to, and its target, wait.
    migrate(&path, is_job(), false).unwrap();
    audit(&path).unwrap();
    place.heap = Heap::open(&path, &place.options).unwrap();
    unsafe {
        is_new(place.heap).unwrap();
        let second = (*root(place.heap)).next.cast::<u64>();
        assert_eq!((*second.sub(5), *second.sub(4)), (0, 0));
    }
}

/// An allocation that is rounded up has more room than elements. What lies there is none.
#[test]
fn what_lies_behind_the_elements_is_none() {
    let long = c"nvl1 8 8 00000000000000ff\ni64\n";
    let to_long = |types| HeapMigration {
        root: text(long),
        types,
        fields: vec![],
    };
    let is_long = || {
        to_long(vec![ChangedType {
            name: Some("i32"),
            was: None,
            now: text(long),
            make: None,
        }])
    };
    let mut place = Place::new(Engine::Shadow);
    let path = place.path();
    let numbers = unsafe {
        let numbers: *mut i32 = __nvl_alloc(place.heap, 10, 4, INT.as_ptr()).cast();
        (0..10).for_each(|at| *numbers.add(at) = -(at as i32));
        __nvl_set_root(place.heap, numbers.cast(), INT.as_ptr());
        numbers.expose_provenance()
    };
    place.close();
    let size = |name: &str| {
        let all = found(&path).unwrap();
        all.iter().find(|it| it.name == name).unwrap().bytes.len()
    };
    assert_eq!(size("nvl i32"), 96, "two more would have room");
    put(&path, numbers + 40, u64::MAX);
    // One that says that it has more than it has room for is damaged, wherever it says so.
    for count in [13, u64::MAX / 4, u64::MAX] {
        put(&path, numbers - 48, count);
        for is_plan in [true, false] {
            let refused = migrate(&path, is_long(), is_plan).unwrap_err().to_string();
            assert!(refused.contains("does not fit its type"), "{refused}");
        }
    }
    put(&path, numbers - 48, 10);
    migrate(&path, is_long(), false).unwrap();
    assert_eq!(size("nvl i64"), 48 + 10 * 8);
    place.heap = Heap::open(&path, &place.options).unwrap();
    unsafe {
        let numbers: *mut i64 = __nvl_get_root(place.heap, long.as_ptr()).cast();
        assert_eq!(header(numbers), (1, 0, 10));
        (0..10).for_each(|at| assert_eq!(*numbers.add(at), -(at as i64)));
    }
}

/// A damaged file may say that it has two.
#[test]
fn a_heap_has_one_root() {
    let (mut place, ..) = closed();
    let path = place.path();
    let heap = Descriptor::parse(HEAP_TYPE).unwrap().id();
    let other = changed(&path, |pool, tx| tx.alloc_bytes(pool, heap, 32, 8));
    let refused = refused(&path);
    assert!(
        refused.contains("another heap: it is not the pool's root"),
        "{refused}"
    );
    changed(&path, |_, tx| unsafe { tx.free(other) });
    migrate(&path, is_job(), false).unwrap();
    place.heap = Heap::open(&path, &place.options).unwrap();
    unsafe { is_new(place.heap).unwrap() };
}

/// Any word of a heap may be damaged: a migration refuses it, or makes a heap of which every count is right.
#[test]
fn whatever_a_word_is_the_new_heap_is_whole_or_there_is_none() {
    let (mut place, ..) = closed();
    let path = place.path();
    let dir = tempfile::tempdir_in("/dev/shm").unwrap();
    let image = dir.path().join("heap");
    let all = found(&path).unwrap();
    let mut told: BTreeMap<bool, u32> = BTreeMap::new();
    let words = [0, 1, all[1].address + 8, all[2].address + 48, u64::MAX];
    let places = all
        .iter()
        .flat_map(|it| (0..it.bytes.len() as u64 / 8).map(|at| it.address + 8 * at));
    let damages = places.flat_map(|at| words.map(|word| (at, word)));
    let step = match std::env::var_os("DURUM_CRASH_ALL") {
        Some(_) => 1,
        None => 17,
    };
    for (at, word) in damages.step_by(step) {
        let _ = std::fs::remove_dir_all(&image);
        copy(&path, &image);
        put(&image, at as usize, word);
        let done = migrate(&image, is_job(), false);
        *told.entry(done.is_ok()).or_default() += 1;
        if done.is_ok()
            && let Err(wrong) = audit(&image)
        {
            panic!("{word:#x} at {at:#x}: {wrong}");
        }
    }
    assert!(
        told.get(&true) > Some(&5) && told.get(&false) > Some(&5),
        "{told:?}"
    );
    place.heap = Heap::open(&path, &place.options).unwrap();
}
