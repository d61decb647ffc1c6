//! Numbers from a seed, the same in every run.

/// A sequence of numbers that its seed determines.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        // SplitMix64 (public domain, Sebastiano Vigna).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`; the bias is far below what a test could notice.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound.max(1) as u64) as usize
    }

    pub fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// The seed of a test, unless the environment names another one.
pub fn seed(default: u64) -> u64 {
    match std::env::var("DURUM_CRASH_SEED") {
        Ok(text) => text.parse().expect("DURUM_CRASH_SEED is a number"),
        Err(_) => default,
    }
}
