//! YCSB's request distribution: Zipf over popularity ranks, and ranks scattered over the keys.

use super::random::{Random, mix};

/// Draws ranks 0..items; rank r is drawn in proportion to 1 / (r + 1)^theta.
///
/// The method is that of Gray et al., "Quickly generating billion-record synthetic databases" (SIGMOD 1994), which YCSB
/// uses.
#[derive(Clone, Debug)]
pub struct Zipf {
    items: usize,
    theta: f64,
    alpha: f64,
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// A distribution over `items` ranks with 0 < `theta` < 1.
    pub fn new(items: usize, theta: f64) -> Zipf {
        let zeta_of = |n: usize| (1..=n).map(|rank| (rank as f64).powf(-theta)).sum::<f64>();
        let zeta = zeta_of(items);
        Zipf {
            items,
            theta,
            alpha: 1.0 / (1.0 - theta),
            zeta,
            eta: (1.0 - (2.0 / items as f64).powf(1.0 - theta))
                / (1.0 - zeta_of(2.min(items)) / zeta),
        }
    }

    /// The next rank.
    pub fn rank(&self, random: &mut Random) -> usize {
        let u = random.unit();
        let scaled = u * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(self.theta) {
            return 1.min(self.items - 1);
        }
        let rank = self.items as f64 * (self.eta * u - self.eta + 1.0).powf(self.alpha);
        (rank as usize).min(self.items - 1)
    }

    /// The next item: ranks are scattered, so that popular items are not neighbours.
    pub fn item(&self, random: &mut Random) -> usize {
        (mix(self.rank(random) as u64) % self.items as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popular_ranks_come_as_often_as_zipf_says() {
        let (items, theta, draws) = (1000, 0.99, 200_000);
        let zipf = Zipf::new(items, theta);
        let mut random = Random::new(3);
        let mut counts = vec![0u32; items];
        for _ in 0..draws {
            counts[zipf.rank(&mut random)] += 1;
        }
        let zeta: f64 = (1..=items).map(|rank| (rank as f64).powf(-theta)).sum();
        for rank in [0usize, 1] {
            let expected = draws as f64 / ((rank + 1) as f64).powf(theta) / zeta;
            let found = f64::from(counts[rank]);
            assert!(
                (found / expected - 1.0).abs() < 0.05,
                "rank {rank}: {found}, expected {expected}"
            );
        }
        // The method approximates the ranks behind; as a group they must be right.
        let head: u32 = counts[..100].iter().sum();
        let expected: f64 = (1..=100)
            .map(|rank| (rank as f64).powf(-theta))
            .sum::<f64>()
            / zeta;
        assert!((f64::from(head) / draws as f64 - expected).abs() < 0.02);
    }
}
