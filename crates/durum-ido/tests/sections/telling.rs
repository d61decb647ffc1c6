//! What a record tells of where more was freed than it has room for.

use std::ffi::c_void;
use std::sync::Once;
use std::sync::atomic::AtomicPtr;

use durum_ido::abi::*;
use durum_ido::abi_typed::__durum_ido_typed_malloc;
use durum_persist::line;
use durum_persist::simulate::{Plan, Rules, explore_with_recovery};

use crate::crash::recover;
use crate::memory::boxes_in;
use crate::program::{
    Root, address, at, function, lock, record, region, resumes, store, unlock, words,
};
use crate::support::{alone, close, on_a_thread, open, recorded};

const CLEAR: u64 = 0x7a7a_1c1c_0e0e;

static CLEAR_REGIONS: [Region; 1] = [region(CLEAR, 1, 3)];

struct Functions([Function; 1]);
unsafe impl Sync for Functions {}

static FUNCTIONS: Functions = Functions([function(CLEAR, c"clear", resume_clear, &CLEAR_REGIONS)]);

pub fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| unsafe { __durum_ido_register(FUNCTIONS.0.as_ptr(), 1) });
}

/// Boxes that are freed one by one, each of a size of its own, and of a type.
const SINGLE: u64 = 4;
/// Then those of so many sizes in one section: as many words of bitmaps as a record has room for.
const SIZES: u64 = 16;
/// Boxes of each of these sizes.
const EACH: u64 = 4;
const ALL: u64 = SINGLE + SIZES * EACH;

static BYTES: AllocatedType = AllocatedType {
    text: c"i8\n".as_ptr(),
    known: AtomicPtr::new(std::ptr::null_mut()),
};

/// Boxes, by a list of them. Each size of a type has a slab.
unsafe fn make_boxes(root: *mut Root) {
    unsafe {
        let list = nv_malloc(ALL as usize * 8).cast::<u64>();
        for index in 0..ALL {
            let made = match index.checked_sub(SINGLE) {
                None => __durum_ido_typed_malloc(16 * (index as usize + 1), &raw const BYTES),
                Some(index) => nv_malloc(16 * ((index / EACH) as usize + 1)),
            };
            line::store_u64(list.add(index as usize), address(made));
        }
        durum_own(list.cast(), ALL as usize * 8);
        (*root).values[0] = address(list);
        durum_own((&raw const (*root).values).cast(), 8);
        clear(root, 0, 0);
    }
}

/// Frees the boxes of a part of the list.
unsafe fn clear(root: *mut Root, from: u64, to: u64) {
    unsafe {
        lock(root);
        let words = [address(root), from, to];
        record(__durum_ido_thread(), &CLEAR_REGIONS[0], words);
        clear_part(words);
    }
}

unsafe fn clear_part([root, from, to]: [u64; 3]) {
    unsafe {
        let root = at::<Root>(root);
        let values = (&raw mut (*root).values).cast::<u64>();
        let list = at::<u64>(values.read());
        store(__durum_ido_thread(), values.add(1), to);
        for index in from..to {
            nv_free(at::<c_void>(list.add(index as usize).read()));
        }
        unlock(root);
    }
}

resumes!(resume_clear: _ => clear_part);

/// Small objects are kept to be taken again, and their records tell that they were freed. What others have freed has
/// the room first.
#[test]
fn what_is_kept_takes_no_room_from_what_was_just_freed() {
    let _alone = alone();
    let trace = recorded(
        None,
        |root| unsafe { make_boxes(root) },
        |root, ()| unsafe {
            for index in 0..SINGLE {
                clear(root, index, index + 1);
            }
            clear(root, SINGLE, ALL);
        },
    );
    let mut plan = Plan::new(Rules::Lines, 1);
    plan.points_max = Some(32);
    plan.random_images = 1;
    plan.nested_points_max = Some(4);
    plan.nested_one_in = 40;
    let report = explore_with_recovery(&trace, &plan, recover, |image, _| {
        let freed = on_a_thread(|| {
            let root = open(image)?;
            let freed = unsafe { (*root).values[1] };
            close().map_err(|error| error.to_string())?;
            Ok(freed)
        });
        let freed = freed.inspect_err(|_| drop(close()))?;
        let (taken, known) = (boxes_in(image)?, 1 + ALL - freed);
        match (known..=known + SINGLE).contains(&taken) {
            true => Ok(()),
            false => Err(format!("{taken} boxes are taken, and {known} are known")),
        }
    });
    let report = report.unwrap_or_else(|failure| panic!("{failure}"));
    println!("{} points, {} images", report.points, report.images);
}
