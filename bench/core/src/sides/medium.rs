//! A side on another medium: other write-back instructions, or the delays of one that is emulated (Romulus, SPAA'18,
//! Figure 9).

use std::path::Path;

use durum_persist::domain::{Delays, emulate};
use durum_persist::line::{self, Instruction};

use crate::error::Result;
use crate::side::{self, Role, Side};

/// What lines are written back to, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// Memory, by this instruction.
    Written(Instruction),
    /// One that is emulated, by the processor's best instruction and a delay.
    Emulated(Delays),
}

impl Medium {
    /// Those of the figure, as far as this processor has the instructions.
    pub fn all() -> Vec<(&'static str, Medium)> {
        [
            ("clwb", Medium::Written(Instruction::Clwb)),
            ("clflushopt", Medium::Written(Instruction::ClflushOpt)),
            ("clflush", Medium::Written(Instruction::Clflush)),
            ("stt", Medium::Emulated(Delays::STT_RAM)),
            ("pcm", Medium::Emulated(Delays::PCM)),
        ]
        .into_iter()
        .filter(|(_, medium)| match medium {
            Medium::Written(instruction) => line::has(*instruction),
            Medium::Emulated(_) => true,
        })
        .collect()
    }

    /// Runs `work` on this medium.
    fn with<R>(self, work: impl FnOnce() -> R) -> R {
        let before = line::instruction();
        match self {
            Medium::Written(instruction) => line::dangerous_set_instruction(instruction),
            Medium::Emulated(delays) => emulate(Some(delays)),
        }
        let result = work();
        emulate(None);
        line::dangerous_set_instruction(before);
        result
    }
}

/// The side on the medium. It takes part in swaps.
pub struct OnMedium<S> {
    name: String,
    inner: S,
    medium: Medium,
}

impl<S: Side> OnMedium<S> {
    /// It goes by the names of both.
    pub fn new(inner: S, (name, medium): (&str, Medium)) -> Self {
        OnMedium {
            name: format!("{}_{name}", inner.name()),
            inner,
            medium,
        }
    }
}

impl<S: Side> Side for OnMedium<S> {
    fn name(&self) -> &str {
        &self.name
    }

    fn role(&self) -> Role {
        self.inner.role()
    }

    fn domain(&self) -> &str {
        match self.medium {
            Medium::Written(_) => self.inner.domain(),
            Medium::Emulated(_) => "emulated",
        }
    }

    fn swap(&self, dir: &Path, count: usize) -> Result<Box<dyn side::Swap>> {
        let dir = dir.join(&self.name);
        std::fs::create_dir_all(&dir).map_err(crate::error::Error::file(&dir))?;
        let swap = self.inner.swap(&dir, count)?;
        Ok(Box::new(SwapOnMedium {
            swap,
            medium: self.medium,
        }))
    }
}

struct SwapOnMedium {
    swap: Box<dyn side::Swap>,
    medium: Medium,
}

impl side::Swap for SwapOnMedium {
    fn values(&self) -> &[u64] {
        self.swap.values()
    }

    fn run(&mut self, pairs: &[[u32; 2]], per_tx: usize) -> Result<()> {
        self.medium.with(|| self.swap.run(pairs, per_tx))
    }
}
