//! How long operations took: LevelDB's buckets, and the text it makes of them.

use std::fmt;

/// Buckets: one for each limit, the last without.
const BUCKETS: usize = 154;

/// Where buckets end, in tenths of a power of ten, from 10 on.
const STEPS: [u64; 16] = [
    10, 12, 14, 16, 18, 20, 25, 30, 35, 40, 45, 50, 60, 70, 80, 90,
];

/// Times in microseconds.
#[derive(Clone, Debug)]
pub struct Histogram {
    count: u64,
    min: f64,
    max: f64,
    sum: f64,
    sum_squares: f64,
    buckets: [u64; BUCKETS],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            count: 0,
            min: f64::INFINITY,
            max: 0.0,
            sum: 0.0,
            sum_squares: 0.0,
            buckets: [0; BUCKETS],
        }
    }
}

/// Where a bucket ends: 1 to 9, then sixteen for each power of ten; nothing reaches the last one's.
fn limit(bucket: usize) -> f64 {
    match bucket {
        0..9 => (bucket + 1) as f64,
        _ if bucket + 1 == BUCKETS => 1e200,
        _ => {
            let (power, step) = ((bucket - 9) / STEPS.len(), (bucket - 9) % STEPS.len());
            (STEPS[step] * 10u64.pow(power as u32)) as f64
        }
    }
}

/// Where it begins.
fn begin(bucket: usize) -> f64 {
    bucket.checked_sub(1).map_or(0.0, limit)
}

impl Histogram {
    /// Counts a time.
    pub fn add(&mut self, micros: f64) {
        let (mut low, mut high) = (0, BUCKETS - 1);
        while low < high {
            let middle = (low + high) / 2;
            match limit(middle) <= micros {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        self.buckets[low] += 1;
        self.count += 1;
        self.min = self.min.min(micros);
        self.max = self.max.max(micros);
        self.sum += micros;
        self.sum_squares += micros * micros;
    }

    /// Adds the times of another one.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        self.sum += other.sum;
        self.sum_squares += other.sum_squares;
        for (own, more) in self.buckets.iter_mut().zip(other.buckets) {
            *own += more;
        }
    }

    /// The time in the middle, as if times were spread evenly over their bucket.
    fn median(&self) -> f64 {
        let half = self.count as f64 / 2.0;
        let mut before = 0.0;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            let count = count as f64;
            if count > 0.0 && before + count >= half {
                let share = (half - before) / count;
                let inside = begin(bucket) + (limit(bucket) - begin(bucket)) * share;
                return inside.clamp(self.min, self.max);
            }
            before += count;
        }
        self.max
    }
}

impl fmt::Display for Histogram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.count.max(1) as f64;
        let average = self.sum / count;
        let variance = (self.sum_squares / count - average * average).max(0.0);
        let min = if self.count == 0 { 0.0 } else { self.min };
        writeln!(
            f,
            "Count: {}  Average: {average:.4}  StdDev: {:.2}",
            self.count,
            variance.sqrt()
        )?;
        writeln!(
            f,
            "Min: {min:.4}  Median: {:.4}  Max: {:.4}",
            self.median(),
            self.max
        )?;
        writeln!(f, "{}", "-".repeat(54))?;
        let mut so_far = 0;
        for (bucket, &of_bucket) in self.buckets.iter().enumerate() {
            if of_bucket == 0 {
                continue;
            }
            so_far += of_bucket;
            let share = of_bucket as f64 / count;
            // A mark is 5 %.
            let marks = "#".repeat((20.0 * share + 0.5) as usize);
            writeln!(
                f,
                "[ {:>7}, {:>7} ) {of_bucket:>7} {:>7.3}% {:>7.3}% {marks}",
                begin(bucket),
                limit(bucket),
                100.0 * share,
                100.0 * so_far as f64 / count,
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_are_leveldbs() {
        let limits: Vec<f64> = (0..BUCKETS).map(limit).collect();
        assert_eq!(
            limits[..16],
            [
                1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 12., 14., 16., 18., 20., 25.
            ]
        );
        assert!(limits.is_sorted_by(|a, b| a < b));
        assert_eq!(limits[BUCKETS - 2..], [9e9, 1e200]);
    }

    #[test]
    fn it_reads_as_leveldbs_does() {
        let mut histogram = Histogram::default();
        [0.5, 1.0, 1.5, 11.0]
            .iter()
            .for_each(|micros| histogram.add(*micros));
        let mut more = Histogram::default();
        more.add(250.0);
        histogram.merge(&more);
        let text = "Count: 5  Average: 52.8000  StdDev: 98.68\n\
            Min: 0.5000  Median: 1.7500  Max: 250.0000\n\
            ------------------------------------------------------\n\
            [       0,       1 )       1  20.000%  20.000% ####\n\
            [       1,       2 )       2  40.000%  60.000% ########\n\
            [      10,      12 )       1  20.000%  80.000% ####\n\
            [     250,     300 )       1  20.000% 100.000% ####\n";
        assert_eq!(histogram.to_string(), text);
        let none = Histogram::default().to_string();
        assert!(
            none.starts_with("Count: 0  Average: 0.0000  StdDev: 0.00\nMin: 0.0000"),
            "{none}"
        );
    }
}
