//! Single operations.

use std::collections::VecDeque;
use std::hint::black_box;

use super::memory::{PlainMemory, Written};
use crate::error::Result;
use crate::side::{self, AREA_ROOM, AREA_SIZE, area_in};
use crate::structures::Memory;

/// Exactly one line, so that the ring has the same footprint on all sides however wide their pointers are.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug)]
pub struct RingNode {
    pub(crate) next: *mut RingNode,
    pub(crate) number: u64,
}

durum::describe!(RingNode as "bench ring node" { next, number });

/// Reads `count` times through one stored pointer.
///
/// # Safety
/// `first` is valid for reads, and what it holds too.
pub(crate) unsafe fn deref_raw(first: *const *const RingNode, count: usize) -> u64 {
    let mut sum = 0;
    for _ in 0..count {
        // SAFETY: valid by contract. Volatile: the pointer is read again each time.
        let node = unsafe { first.read_volatile() };
        // SAFETY: valid by contract.
        sum += unsafe { (*node).number } + 1;
    }
    sum
}

/// Follows `steps` pointers.
///
/// # Safety
/// `node` is a node of a ring whose nodes are all valid.
pub(crate) unsafe fn chase_raw(mut node: *const RingNode, steps: usize) -> u64 {
    let mut sum = 0u64;
    for _ in 0..steps {
        // SAFETY: a node of the ring.
        let RingNode { next, number } = unsafe { *node };
        sum = sum.wrapping_add(number);
        node = next;
    }
    sum
}

/// An area, a ring and some objects in an arena.
pub(super) struct PlainCells<W> {
    memory: PlainMemory<W>,
    // INVARIANT: AREA_SIZE bytes in `memory`.
    area: *mut u8,
    // INVARIANT: a pointer in `memory` to node 0 of a ring in `memory`.
    first: *mut *const RingNode,
    /// Objects of `object_len` bytes in `memory`.
    objects: VecDeque<*mut u8>,
    object_len: usize,
}

impl<W: Written> PlainCells<W> {
    pub(super) fn new(mut memory: PlainMemory<W>, ring: &[u32]) -> Result<Self> {
        let area = area_in(memory.zeroed_array::<u64>(AREA_ROOM / 8)?.cast());
        let nodes = memory.zeroed_array::<RingNode>(ring.len())?;
        for (index, next) in ring.iter().enumerate() {
            // SAFETY: both are inside the array.
            let (node, next) = unsafe { (nodes.add(index), nodes.add(*next as usize)) };
            // SAFETY: inside the array.
            unsafe {
                node.write(RingNode {
                    next,
                    number: index as u64,
                })
            };
        }
        let first = memory.root::<*mut RingNode>()?;
        // SAFETY: the root object.
        unsafe { first.write(nodes) };
        Ok(PlainCells {
            memory,
            area,
            first: first.cast(),
            objects: VecDeque::new(),
            object_len: 0,
        })
    }
}

impl<W: Written> side::Cells for PlainCells<W> {
    fn area(&self) -> &[u8] {
        // SAFETY: the invariant of `area`; it changes only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.area, AREA_SIZE) }
    }

    fn floor(&mut self, stride: usize, count: usize) -> Result<()> {
        for index in 0..count {
            // SAFETY: inside the area, and aligned, since strides are.
            let cell = unsafe { self.area.add((index * stride) % AREA_SIZE) }.cast::<u64>();
            // SAFETY: as above.
            unsafe { cell.write_volatile(index as u64) };
            // SAFETY: as above.
            unsafe { self.memory.written.persist(cell.cast(), 8) };
        }
        Ok(())
    }

    fn tx_empty(&mut self, count: usize) -> Result<()> {
        for index in 0..count {
            black_box(index);
        }
        Ok(())
    }

    fn add(&mut self, stride: usize, image: &[u8], count: usize) -> Result<()> {
        let mut image = image.to_vec();
        for index in 0..count {
            // SAFETY: inside the area, with room for a stride.
            let target = unsafe { self.area.add((index * stride) % AREA_SIZE) };
            self.memory.overwrite(target, &mut image, index as u64);
        }
        Ok(())
    }

    fn alloc(&mut self, image: &[u8], count: usize) -> Result<()> {
        let mut image = image.to_vec();
        self.object_len = image.len();
        for index in 0..count {
            let object = self.memory.arena.alloc(image.len())?;
            self.memory.overwrite(object, &mut image, index as u64);
            self.objects.push_back(object);
        }
        Ok(())
    }

    fn objects_sum(&self) -> u64 {
        let word = |object: *mut u8, offset: usize| {
            // SAFETY: inside the object, and aligned, since object sizes are multiples of 8.
            unsafe { object.add(offset).cast::<u64>().read() }
        };
        self.objects.iter().fold(0, |sum, object| {
            sum.wrapping_add(word(*object, 0) ^ word(*object, self.object_len - 8) << 32)
        })
    }

    fn free(&mut self, count: usize) -> Result<()> {
        for object in self.objects.drain(..count) {
            // The least that a durable free can be: one word that says so.
            // SAFETY: the first word of an object.
            unsafe { object.cast::<u64>().write_volatile(0) };
            // SAFETY: as above.
            unsafe { self.memory.written.persist(object, 8) };
            self.memory.arena.free(object, self.object_len);
        }
        Ok(())
    }

    fn deref(&mut self, count: usize) -> u64 {
        // SAFETY: the invariant of `first`.
        unsafe { deref_raw(self.first, count) }
    }

    fn chase(&mut self, steps: usize) -> u64 {
        // SAFETY: the invariant of `first`.
        unsafe { chase_raw(*self.first, steps) }
    }
}
