//! Runs with a name, which tests, file-domain tests and canaries share.

use durum::Engine;
use durum_persist::Site;
use durum_persist::simulate::Report;

use super::campaign::{Campaign, Recording, World};

/// A run with a name.
#[derive(Clone, Copy)]
pub struct Workload {
    pub name: &'static str,
    /// What it needs beside the defaults.
    pub needs: fn(Campaign) -> Campaign,
    /// Before the recording.
    pub before: fn(&mut World),
    /// What is recorded.
    pub run: fn(&mut World),
}

/// A run without needs.
pub const PLAIN: Workload = Workload {
    name: "",
    needs: |campaign| campaign,
    before: |_| (),
    run: |_| (),
};

/// The media of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Medium {
    Lines,
    Sectors,
}

impl Workload {
    pub fn campaign(&self, medium: Medium) -> Campaign {
        (self.needs)(match medium {
            Medium::Lines => Campaign::lines(self.name),
            Medium::Sectors => Campaign::sectors(self.name),
        })
    }

    pub fn record(&self, medium: Medium, skip: Option<Site>) -> Recording {
        let mut campaign = self.campaign(medium);
        campaign.skip = skip;
        campaign.record_after(self.before, self.run)
    }

    /// Whether the engine can do it: transactions of a Twin pool come one after the other.
    pub fn is_possible(&self) -> bool {
        let campaign = self.campaign(Medium::Lines);
        campaign.engine != Engine::Twin || campaign.lanes == 1
    }

    /// All crashes on mapped memory.
    pub fn survives_on_lines(&self) -> Report {
        self.survives_on(Medium::Lines)
    }

    /// All crashes on a file system.
    pub fn survives_on_sectors(&self) -> Report {
        self.survives_on(Medium::Sectors)
    }

    fn survives_on(&self, medium: Medium) -> Report {
        match self.is_possible() {
            true => self.record(medium, None).survives(),
            false => Report::default(),
        }
    }
}
