//! The operations, one row of the table each, and how each is run.

use std::hint::black_box;
use std::time::Instant;

use durum::typed::*;

use crate::desk::{BATCH, Desk, Objects, P, batch_of, empty, fill};
use crate::times::{Times, keep};

/// An operation of the table: its name, what the paper says (Optane, DRAM; ns), and how it is run.
pub struct Row {
    pub name: &'static str,
    pub optane: f64,
    pub dram: f64,
    pub run: fn(&Desk, usize) -> Times,
}

const fn row(name: &'static str, optane: f64, dram: f64, run: fn(&Desk, usize) -> Times) -> Row {
    Row {
        name,
        optane,
        dram,
        run,
    }
}

pub const ROWS: &[Row] = &[
    row("Deref", 0.9, 1.0, |desk, batches| {
        fill(&desk.integers, 1);
        let objects = desk.integers.borrow();
        let object = &objects[0];
        Times::measure(batches, |_| {
            black_box(**black_box(object));
        })
    }),
    row("DerefMut (first)", 467.0, 235.0, |desk, batches| {
        write_first(&desk.integers, batches, |value| *value += 1)
    }),
    row("DerefMut (again)", 0.4, 0.4, |desk, batches| {
        fill(&desk.integers, 1);
        Times::measure_batches(batches, BATCH, |j| {
            let mut objects = desk.integers.borrow_mut(j);
            let value = &mut *objects[0];
            let begin = Instant::now();
            for number in 0..BATCH {
                *black_box(&mut *value) = number as i32;
            }
            begin.elapsed()
        })
    }),
    row("Alloc + init (8 B)", 734.0, 241.0, |desk, batches| {
        allocate(&desk.words, batches)
    }),
    row("Alloc + init (256 B)", 706.0, 264.0, |desk, batches| {
        allocate(&desk.quarters, batches)
    }),
    row("Alloc + init (4 kB)", 1685.0, 1907.0, |desk, batches| {
        allocate(&desk.pages, batches)
    }),
    row("Dealloc (8 B)", 632.0, 384.0, |desk, batches| {
        free(&desk.words, batches)
    }),
    row("Dealloc (256 B)", 598.0, 249.0, |desk, batches| {
        free(&desk.quarters, batches)
    }),
    row("Dealloc (4 kB)", 675.0, 248.0, |desk, batches| {
        free(&desk.pages, batches)
    }),
    row("Pbox::AtomicInit (8 B)", 822.0, 416.0, |_, batches| {
        Times::keep(batches, |j| Pbox::<u64, P>::new(1, j))
    }),
    row("Prc::AtomicInit (8 B)", 2089.0, 1210.0, |_, batches| {
        Times::keep(batches, |j| Prc::<u64, P>::new(1, j))
    }),
    row("Parc::AtomicInit (8 B)", 3508.0, 2304.0, |_, batches| {
        Times::keep(batches, |j| Parc::<u64, P>::new(1, j))
    }),
    row("TxNop", 198.0, 198.0, |_, batches| {
        let mut times = Times::default();
        let begin = Instant::now();
        for _ in 0..batches * BATCH {
            P::transaction(|_| ()).expect("nothing can fail");
        }
        times.add(begin.elapsed(), begin.elapsed(), batches * BATCH);
        times
    }),
    row("DataLog (8 B)", 574.0, 253.0, |desk, batches| {
        write_first(&desk.words, batches, |value| *value += 1)
    }),
    row("DataLog (1 kB)", 1070.0, 500.0, |desk, batches| {
        write_first(&desk.kilobytes, batches, |block| block.bytes[0] += 1)
    }),
    row("DataLog (4 kB)", 2463.0, 1510.0, |desk, batches| {
        write_first(&desk.pages, batches, |block| block.bytes[0] += 1)
    }),
    row("DropLog (8 B)", 29.0, 28.0, |desk, batches| {
        free(&desk.words, batches)
    }),
    row("DropLog (32 kB)", 28.0, 28.0, |desk, batches| {
        free(&desk.large, batches)
    }),
    row("Pbox::pclone (8 B)", 698.0, 314.0, |desk, batches| {
        fill(&desk.words, 1);
        let words = desk.words.borrow();
        let object = &words[0];
        Times::keep(batches, |j| object.pclone(j))
    }),
    row("Prc::pclone", 13.0, 8.0, |desk, batches| {
        with_local(desk, batches, |object, j| object.pclone(j))
    }),
    row("Parc::pclone", 333.0, 170.0, |desk, batches| {
        with_shared(desk, batches, |object, j| object.pclone(j))
    }),
    row("Prc::downgrade", 6.0, 6.0, |desk, batches| {
        with_local(desk, batches, |object, j| object.downgrade(j))
    }),
    row("Parc::downgrade", 335.0, 174.0, |desk, batches| {
        with_shared(desk, batches, |object, j| object.downgrade(j))
    }),
    row("Prc::PWeak::upgrade", 9.0, 9.0, |desk, batches| {
        with_local_weak(desk, batches)
    }),
    row("Parc::PWeak::upgrade", 321.0, 175.0, |desk, batches| {
        with_shared_weak(desk, batches)
    }),
    row("Prc::demote", 42.0, 43.0, |desk, batches| {
        with_local(desk, batches, |object, _| object.demote())
    }),
    row("Parc::demote", 75.0, 75.0, |desk, batches| {
        with_shared(desk, batches, |object, _| object.demote())
    }),
    row("Prc::VWeak::promote", 12.0, 13.0, |desk, batches| {
        let weak = demote_local(desk);
        Times::keep(batches, |j| weak.promote(j))
    }),
    row("Parc::VWeak::promote", 352.0, 175.0, |desk, batches| {
        let weak = demote_shared(desk);
        Times::keep(batches, |j| weak.promote(j))
    }),
];

/// Allocates objects; they are freed without being timed.
pub fn allocate<T: PSafe + Default>(objects: &Objects<T>, batches: usize) -> Times {
    // Room that was used before: what it takes to make the pool grow is the subject of other rows.
    let batch = batch_of::<T>();
    fill(objects, batch);
    empty(objects);
    let mut times = Times::default();
    for _ in 0..batches {
        let begin = Instant::now();
        let spent = P::transaction(|j| {
            let mut objects = objects.borrow_mut(j);
            objects.reserve(batch, j);
            let begin = Instant::now();
            for _ in 0..batch {
                objects.push(Pbox::new(T::default(), j), j);
            }
            begin.elapsed()
        });
        times.add(spent.expect("there is room"), begin.elapsed(), batch);
        assert_eq!(objects.borrow().len(), batch);
        empty(objects);
    }
    times
}

/// Frees objects; they are allocated without being timed.
pub fn free<T: PSafe + Default>(objects: &Objects<T>, batches: usize) -> Times {
    let mut times = Times::default();
    for _ in 0..batches {
        fill(objects, batch_of::<T>());
        let begin = Instant::now();
        let spent = P::transaction(|j| {
            let mut objects = objects.borrow_mut(j);
            let mut all = Vec::with_capacity(objects.len());
            all.extend(std::iter::from_fn(|| objects.pop()));
            let begin = Instant::now();
            drop(all);
            begin.elapsed()
        });
        times.add(
            spent.expect("objects are freed"),
            begin.elapsed(),
            batch_of::<T>(),
        );
    }
    assert!(objects.borrow().is_empty());
    times
}

/// Writes to each of a thousand objects for the first time in a transaction.
pub fn write_first<T: PSafe + Default>(
    objects: &Objects<T>,
    batches: usize,
    write: fn(&mut T),
) -> Times {
    fill(objects, batch_of::<T>());
    let times = Times::measure_batches(batches, batch_of::<T>(), |j| {
        let mut objects = objects.borrow_mut(j);
        let begin = Instant::now();
        for object in &mut objects[..] {
            write(object);
        }
        begin.elapsed()
    });
    empty(objects);
    times
}

fn demote_local(desk: &Desk) -> VWeak<u64, P, Local> {
    P::transaction(|j| {
        let mut local = desk.local.borrow_mut(j);
        if local.is_none() {
            *local = Some(Prc::new(1, j));
        }
    })
    .expect("there is room");
    let local = desk.local.borrow();
    local.as_ref().expect("just made").demote()
}

fn demote_shared(desk: &Desk) -> VWeak<u64, P> {
    P::transaction(|j| {
        let mut shared = desk.shared.lock(j);
        shared.get_or_insert_with(|| Parc::new(1, j)).demote()
    })
    .expect("there is room")
}

fn with_local<R>(
    desk: &Desk,
    batches: usize,
    operation: fn(&Prc<u64, P>, &Journal<P>) -> R,
) -> Times {
    demote_local(desk);
    let local = desk.local.borrow();
    let object = local.as_ref().expect("just made");
    Times::keep(batches, |j| operation(object, j))
}

fn with_shared<R>(
    desk: &Desk,
    batches: usize,
    operation: fn(&Parc<u64, P>, &Journal<P>) -> R,
) -> Times {
    demote_shared(desk);
    Times::measure_batches(batches, BATCH, |j| {
        let shared = desk.shared.lock(j);
        let object = shared.as_ref().expect("just made");
        keep(|| operation(object, j))
    })
}

fn with_local_weak(desk: &Desk, batches: usize) -> Times {
    let weak = demote_local(desk);
    Times::measure_batches(batches, BATCH, |j| {
        let weak = weak.promote(j).expect("it lives").downgrade(j);
        keep(|| weak.upgrade(j))
    })
}

fn with_shared_weak(desk: &Desk, batches: usize) -> Times {
    let weak = demote_shared(desk);
    Times::measure_batches(batches, BATCH, |j| {
        let weak = weak.promote(j).expect("it lives").downgrade(j);
        keep(|| weak.upgrade(j))
    })
}

/// What `Deref` and `DerefMut` are compared with.
pub fn box_instead(batches: usize) -> [Times; 2] {
    let mut object = Box::new(1);
    let mut times = [Times::default(); 2];
    for _ in 0..batches {
        let begin = Instant::now();
        for _ in 0..BATCH {
            black_box(**black_box(&object));
        }
        times[0].add(begin.elapsed(), begin.elapsed(), BATCH);
        let value = &mut *object;
        let begin = Instant::now();
        for number in 0..BATCH {
            *black_box(&mut *value) = number as i32;
        }
        times[1].add(begin.elapsed(), begin.elapsed(), BATCH);
    }
    times
}
