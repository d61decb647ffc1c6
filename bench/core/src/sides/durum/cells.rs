//! Single operations.

use std::collections::VecDeque;

use super::memory::DurumMemory;
use crate::error::Result;
use crate::side::{self, AREA_ROOM, AREA_SIZE, area_in};
use crate::sides::plain::cells::{RingNode, chase_raw, deref_raw};
use crate::structures::{Memory, Stored};

/// The root object.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Root {
    first: *mut RingNode,
}

durum::describe!(Root as "bench cells" { first });

macro_rules! object {
    ($type:ident, $name:literal, $words:literal) => {
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        struct $type {
            words: [u64; $words],
        }
        durum::describe!($type as $name { words });
    };
}

object!(Object8, "bench object of 8 bytes", 1);
object!(Object256, "bench object of 256 bytes", 32);
object!(Object4096, "bench object of 4096 bytes", 512);

/// An area, a ring and some objects in a pool.
pub(super) struct DurumCells {
    memory: DurumMemory,
    // INVARIANT: AREA_SIZE bytes in the pool.
    area: *mut u8,
    // INVARIANT: the root object; `first` is node 0 of a ring in the pool.
    root: *mut Root,
    /// Live objects of `object_len` bytes in the pool.
    objects: VecDeque<*mut u8>,
    object_len: usize,
}

impl DurumCells {
    pub(super) fn new(mut memory: DurumMemory, ring: &[u32]) -> Result<Self> {
        let area = area_in(memory.zeroed(AREA_ROOM)?);
        let root = memory.root::<Root>()?;
        let pool = &memory.temp.pool;
        let built = pool.transaction(|tx| {
            let nodes: *mut RingNode = tx
                .alloc_bytes(pool, 0, size_of_val(ring) / 4 * 64, 64)?
                .cast();
            for (index, next) in ring.iter().enumerate() {
                // SAFETY: both are inside the array.
                let (node, next) = unsafe { (nodes.add(index), nodes.add(*next as usize)) };
                // SAFETY: inside the array, which was just allocated.
                unsafe {
                    node.write(RingNode {
                        next,
                        number: index as u64,
                    })
                };
            }
            // SAFETY: a field of the root object; one thread.
            unsafe { tx.set(&raw mut (*root).first, nodes) }
        });
        built.map_err(memory.said())?;
        Ok(DurumCells {
            memory,
            area,
            root,
            objects: VecDeque::new(),
            object_len: 0,
        })
    }

    fn alloc_as<T: Stored>(&mut self, image: &mut [u8], count: usize) -> Result<()> {
        assert_eq!(image.len(), size_of::<T>());
        for index in 0..count {
            image[..8].copy_from_slice(&(index as u64).to_ne_bytes());
            let made = self.memory.temp.pool.transaction(|tx| {
                let object = tx.alloc::<T>()?;
                // SAFETY: just allocated; `image` has its size.
                unsafe {
                    object
                        .cast::<u8>()
                        .copy_from_nonoverlapping(image.as_ptr(), image.len())
                };
                Ok(object)
            });
            self.objects
                .push_back(made.map_err(self.memory.said())?.cast());
        }
        Ok(())
    }
}

impl side::Cells for DurumCells {
    fn area(&self) -> &[u8] {
        // SAFETY: the invariant of `area`; it changes only through `&mut self`.
        unsafe { std::slice::from_raw_parts(self.area, AREA_SIZE) }
    }

    fn floor(&mut self, stride: usize, count: usize) -> Result<()> {
        for index in 0..count {
            // SAFETY: inside the area, and aligned, since strides are.
            let cell = unsafe { self.area.add((index * stride) % AREA_SIZE) }.cast::<u64>();
            // SAFETY: as above.
            unsafe { cell.write(index as u64) };
            // SAFETY: one thread.
            unsafe { self.memory.temp.pool.persist(cell, 8) }.map_err(self.memory.said())?;
        }
        Ok(())
    }

    fn tx_empty(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.memory
                .temp
                .pool
                .transaction(|_| Ok(()))
                .map_err(self.memory.said())?;
        }
        Ok(())
    }

    fn add(&mut self, stride: usize, image: &[u8], count: usize) -> Result<()> {
        let mut image = image.to_vec();
        for index in 0..count {
            image[..8].copy_from_slice(&(index as u64).to_ne_bytes());
            // SAFETY: inside the area, with room for a stride.
            let target = unsafe { self.area.add((index * stride) % AREA_SIZE) };
            let done = self.memory.temp.pool.transaction(|tx| {
                // SAFETY: inside the area; one thread.
                unsafe { tx.add_bytes(target, image.len(), durum::Announce::Backup)? };
                // SAFETY: inside the area, and announced.
                unsafe { target.copy_from_nonoverlapping(image.as_ptr(), image.len()) };
                Ok(())
            });
            done.map_err(self.memory.said())?;
        }
        Ok(())
    }

    fn alloc(&mut self, image: &[u8], count: usize) -> Result<()> {
        let mut image = image.to_vec();
        self.object_len = image.len();
        match image.len() {
            8 => self.alloc_as::<Object8>(&mut image, count),
            256 => self.alloc_as::<Object256>(&mut image, count),
            _ => self.alloc_as::<Object4096>(&mut image, count),
        }
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
            // SAFETY: a live object; no pointer to it is left.
            let done = self
                .memory
                .temp
                .pool
                .transaction(|tx| unsafe { tx.free(object) });
            done.map_err(self.memory.said())?;
        }
        Ok(())
    }

    fn deref(&mut self, count: usize) -> u64 {
        // SAFETY: the invariant of `root`.
        unsafe { deref_raw((&raw const (*self.root).first).cast(), count) }
    }

    fn chase(&mut self, steps: usize) -> u64 {
        // SAFETY: the invariant of `root`.
        unsafe { chase_raw((*self.root).first, steps) }
    }
}
