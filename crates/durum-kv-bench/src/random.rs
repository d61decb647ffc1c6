//! Keys and values that look like LevelDB's.

/// The generator that LevelDB draws keys with: a row of 2^31 - 2 numbers.
#[derive(Clone, Debug)]
pub struct Random(u64);

const MODULUS: u64 = (1 << 31) - 1;

impl Random {
    /// The row that begins with a seed.
    pub fn new(seed: u64) -> Self {
        Self(match seed & MODULUS {
            0 | MODULUS => 1,
            seed => seed,
        })
    }

    /// The next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0 * 16807 % MODULUS;
        self.0
    }

    /// The next number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        // Two numbers, where one would not reach all keys.
        let number = match limit < MODULUS {
            true => self.draw(),
            false => self.draw() << 31 | self.draw(),
        };
        number % limit
    }
}

/// A stretch of bytes that could be compressed as far as was asked for, out of which values are cut.
#[derive(Debug)]
pub struct Values {
    bytes: Vec<u8>,
    at: usize,
}

impl Values {
    /// Bytes for values of up to `size_max`.
    pub fn new(compression_ratio: f64, size_max: usize) -> Self {
        let mut random = Random::new(301);
        let mut bytes = Vec::new();
        while bytes.len() < (1 << 20).max(size_max) {
            // Pieces of 100 bytes: a beginning that is drawn, again and again.
            let drawn = ((100.0 * compression_ratio) as usize).clamp(1, 100);
            let piece: Vec<u8> = (0..drawn)
                .map(|_| b' ' + (random.draw() % 95) as u8)
                .collect();
            bytes.extend(piece.iter().cycle().take(100));
        }
        Self { bytes, at: 0 }
    }

    /// The next value.
    pub fn next(&mut self, size: usize) -> &[u8] {
        if self.at + size > self.bytes.len() {
            self.at = 0;
        }
        self.at += size;
        &self.bytes[self.at - size..self.at]
    }
}

/// The key of a number: 16 digits behind a prefix.
#[derive(Debug)]
pub struct Key {
    bytes: Vec<u8>,
    prefix: usize,
}

impl Key {
    /// A key with so many bytes before its number.
    pub fn new(prefix: usize) -> Self {
        Self {
            bytes: vec![b'a'; prefix + 16],
            prefix,
        }
    }

    /// The key of `number`.
    pub fn of(&mut self, mut number: u64) -> &[u8] {
        for digit in self.bytes[self.prefix..].iter_mut().rev() {
            *digit = b'0' + (number % 10) as u8;
            number /= 10;
        }
        &self.bytes
    }
}
