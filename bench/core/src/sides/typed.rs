//! The typed interface: the same structures in safe Rust, each as its users would write it.

use std::marker::PhantomData;
use std::panic::RefUnwindSafe;
use std::path::Path;

use durum::Engine;
use durum::typed::{Journal, PBTreeMap, PCell, PRefCell, PSafe, PVec, Pbox, PoolType, Prc, Root};

use super::numbers::Numbers;
use super::open::Open;
use crate::error::{Error, Result};
use crate::inputs::{Op, Value, Walk};
use crate::side::{self, Role, Side};

durum::pool!(
    /// The pool of the side on Shadow.
    pub OnShadow
);
durum::pool!(
    /// The pool of the side on Hybrid.
    pub OnHybrid
);

/// An engine under the typed interface.
#[derive(Debug)]
pub struct Typed<P> {
    name: &'static str,
    engine: Engine,
    _pool: PhantomData<P>,
}

/// The sides.
pub fn sides() -> (Typed<OnHybrid>, Typed<OnShadow>) {
    let hybrid = Typed {
        name: "typed_hybrid",
        engine: Engine::Hybrid,
        _pool: PhantomData,
    };
    let shadow = Typed {
        name: "typed_shadow",
        engine: Engine::Shadow,
        _pool: PhantomData,
    };
    (hybrid, shadow)
}

impl<P: PoolType> Typed<P> {
    fn open<T: Root<P>>(&self, dir: &Path) -> Result<Open<T, P>> {
        Open::new(self.name, self.engine, dir)
    }
}

impl<P: PoolType + RefUnwindSafe> Side for Typed<P> {
    fn name(&self) -> &str {
        self.name
    }

    fn role(&self) -> Role {
        Role::Engine
    }

    fn domain(&self) -> &str {
        "dram"
    }

    fn list(&self, dir: &Path) -> Result<Box<dyn side::List>> {
        Ok(Box::new(self.open::<Ends<P>>(dir)?))
    }

    fn tree(&self, dir: &Path) -> Result<Box<dyn side::Tree>> {
        Ok(Box::new(self.open::<Entries<P>>(dir)?))
    }

    fn map(&self, dir: &Path, bucket_bits: u32) -> Result<Box<dyn side::Map>> {
        let open = self.open::<Buckets<P>>(dir)?;
        P::transaction(|j| {
            let empty = (0..1usize << bucket_bits).map(|_| PRefCell::new(None, j));
            open.root.borrow_mut(j).extend(empty, j);
        })
        .map_err(Error::side(self.name))?;
        Ok(Box::new(HashMap { open, bucket_bits }))
    }
}

/// A list node. The last one has two owners: the one before, and the list.
#[derive(PSafe)]
#[repr(C)]
struct ListNode<P: PoolType> {
    value: u64,
    next: PRefCell<Option<Prc<ListNode<P>, P>>, P>,
}

type Link<P> = Option<Prc<ListNode<P>, P>>;

#[derive(PSafe, Root)]
#[repr(C)]
struct Ends<P: PoolType> {
    head: PRefCell<Link<P>, P>,
    tail: PRefCell<Link<P>, P>,
}

impl<P: PoolType> side::List for Open<Ends<P>, P> {
    fn append(&mut self, values: &[u64]) -> Result<()> {
        let ends = &*self.root;
        for value in values {
            P::transaction(|j| {
                let next = PRefCell::new(None, j);
                let node = Prc::new(
                    ListNode {
                        value: *value,
                        next,
                    },
                    j,
                );
                let mut tail = ends.tail.borrow_mut(j);
                match &*tail {
                    Some(last) => *last.next.borrow_mut(j) = Some(node.pclone(j)),
                    None => *ends.head.borrow_mut(j) = Some(node.pclone(j)),
                }
                *tail = Some(node);
            })
            .map_err(Error::side(self.name))?;
        }
        Ok(())
    }

    fn sum(&mut self) -> Walk {
        let ends = &*self.root;
        // A reference of its own at each step: no cell stays borrowed.
        let (count, sum) = P::transaction(|j| {
            let (mut count, mut sum) = (0, 0u64);
            let mut at = ends.head.borrow().as_ref().map(|node| node.pclone(j));
            while let Some(node) = at {
                sum = sum.wrapping_add(node.value);
                count += 1;
                at = node.next.borrow().as_ref().map(|next| next.pclone(j));
            }
            (count, sum)
        })
        .unwrap_or_default();
        Walk {
            count,
            sum,
            sorted: true,
        }
    }

    fn pop(&mut self, count: usize) -> Result<u64> {
        let ends = &*self.root;
        let mut sum = 0u64;
        for _ in 0..count {
            let popped = P::transaction(|j| {
                let mut head = ends.head.borrow_mut(j);
                let first = head.take()?;
                // Another reference, so that nothing is written to the node that goes.
                let next = first.next.borrow().as_ref().map(|next| next.pclone(j));
                if next.is_none() {
                    *ends.tail.borrow_mut(j) = None;
                }
                *head = next;
                Some(first.value)
            })
            .map_err(Error::side(self.name))?;
            match popped {
                Some(value) => sum = sum.wrapping_add(value),
                None => break,
            }
        }
        Ok(sum)
    }
}

#[derive(PSafe)]
#[repr(C)]
struct MapNode<P: PoolType> {
    key: u64,
    next: Option<Pbox<MapNode<P>, P>>,
    value: PCell<Value, P>,
}

type Chain<P> = Option<Pbox<MapNode<P>, P>>;
type Buckets<P> = PRefCell<PVec<PRefCell<Chain<P>, P>, P>, P>;

struct HashMap<P: PoolType> {
    open: Open<Buckets<P>, P>,
    bucket_bits: u32,
}

impl<P: PoolType> HashMap<P> {
    #[inline]
    fn bucket_index(&self, key: u64) -> usize {
        (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - self.bucket_bits)) as usize
    }

    #[inline]
    fn insert(&self, buckets: &PVec<PRefCell<Chain<P>, P>, P>, entry: &Op) -> Result<()> {
        let (bucket, value) = (
            &buckets[self.bucket_index(entry.key)],
            Value::of(entry.value),
        );
        P::transaction(|j| {
            let mut head = bucket.borrow_mut(j);
            let node = MapNode {
                key: entry.key,
                next: head.take(),
                value: PCell::new(value, j),
            };
            *head = Some(Pbox::new(node, j));
        })
        .map_err(Error::side(self.open.name))
    }
}

fn find<P: PoolType>(chain: &Chain<P>, key: u64) -> Option<&MapNode<P>> {
    let mut at = chain.as_ref();
    while let Some(node) = at {
        if node.key == key {
            return Some(node);
        }
        at = node.next.as_ref();
    }
    None
}

impl<P: PoolType> side::Map for HashMap<P> {
    fn load(&mut self, entries: &[Op]) -> Result<()> {
        let buckets = self.open.root.borrow();
        entries
            .iter()
            .try_for_each(|entry| self.insert(&buckets, entry))
    }

    fn run(&mut self, ops: &[Op]) -> Result<u64> {
        let buckets = self.open.root.borrow();
        let mut sum = 0u64;
        for op in ops {
            let chain = buckets[self.bucket_index(op.key)].borrow();
            let Some(node) = find(&chain, op.key) else {
                drop(chain);
                // A read of a key that is not there makes the sum wrong, and the harness says so.
                if op.value != 0 {
                    self.insert(&buckets, op)?;
                }
                continue;
            };
            if op.value == 0 {
                sum = sum.wrapping_add(node.value.get().digest());
            } else {
                let value = Value::of(op.value);
                P::transaction(|j| node.value.set(value, j))
                    .map_err(Error::side(self.open.name))?;
            }
        }
        Ok(sum)
    }

    fn walk(&mut self) -> Walk {
        let mut walk = Walk {
            sorted: true,
            ..Walk::default()
        };
        for bucket in &*self.open.root.borrow() {
            let chain = bucket.borrow();
            let mut at = chain.as_ref();
            while let Some(node) = at {
                walk.sum = walk.sum.wrapping_add(node.key ^ node.value.get().digest());
                walk.count += 1;
                at = node.next.as_ref();
            }
        }
        walk
    }
}

type Entries<P> = PRefCell<PBTreeMap<u64, u64, P>, P>;

impl<P: PoolType> Numbers<P> for PBTreeMap<u64, u64, P> {
    fn put(&mut self, key: u64, value: u64, j: &Journal<P>) {
        self.insert(key, value, j);
    }

    fn take(&mut self, key: u64) -> bool {
        self.remove(&key).is_some()
    }

    fn find_value(&self, key: u64) -> Option<u64> {
        self.get(&key).copied()
    }

    fn show(&self, see: &mut dyn FnMut(u64, u64)) -> bool {
        self.iter().for_each(|(key, value)| see(*key, *value));
        self.iter().is_sorted_by(|(a, _), (b, _)| a < b)
    }
}
