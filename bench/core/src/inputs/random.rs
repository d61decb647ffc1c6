//! Seeded random numbers: every side of every run sees the same inputs.

/// A bijection of 64-bit numbers that looks random (the finaliser of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut z = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A stream of random numbers: `mix` over a counter.
#[derive(Clone, Debug)]
pub struct Random {
    next: u64,
}

impl Random {
    /// A stream that depends on the seed alone.
    pub fn new(seed: u64) -> Random {
        Random { next: mix(seed) }
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.next = self.next.wrapping_add(1);
        mix(self.next)
    }

    /// A number below `bound`, which is not 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The high half of the product: the bias of at most bound / 2^64 does not matter here.
        ((u128::from(self.bits()) * bound as u128) >> 64) as usize
    }

    /// A number in 0.0..1.0.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Brings the elements into a random order.
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, self.below(last + 1));
        }
    }
}

/// A random permutation that is one single cycle: element i is the successor of i.
pub fn single_cycle(count: usize, random: &mut Random) -> Vec<u32> {
    let mut next: Vec<u32> = (0..count as u32).collect();
    // Sattolo's variant of the shuffle: an element never swaps with itself, so that no shorter cycle closes.
    for last in (1..count).rev() {
        next.swap(last, random.below(last));
    }
    next
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_cycle_visits_every_element() {
        for count in [1, 2, 3, 1000] {
            let next = single_cycle(count, &mut Random::new(7));
            let mut at = 0;
            for step in 1..=count {
                at = next[at] as usize;
                assert_eq!(at == 0, step == count, "{count} elements, step {step}");
            }
        }
    }

    #[test]
    fn a_shuffle_keeps_the_elements() {
        let mut elements: Vec<u32> = (0..1000).collect();
        Random::new(1).shuffle(&mut elements);
        assert_ne!(elements[..10], [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        elements.sort_unstable();
        assert!(elements.iter().copied().eq(0..1000));
    }
}
