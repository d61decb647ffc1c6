//! The files of a program that has one table: figures, what they come from, plots, and the page that holds all of it.

use std::fs;
use std::path::Path;

use super::bars::Length;
use super::machine::Description;
use super::page::{self, Page, Part};
use super::table::Table;
use crate::command;
use crate::error::{Error, Result};
use crate::measured::Measured;

/// What a program has measured, and how it is told.
#[derive(Clone, Debug)]
pub struct Figures<'f> {
    /// What the files are called, without their endings.
    pub name: &'static str,
    /// Of the page and of its plots.
    pub title: &'static str,
    /// What to know of the figures.
    pub about: &'f str,
    /// The figures for programs.
    pub csv: String,
    /// The figures for people.
    pub table: Table,
    /// Their times as bars, and as percentiles where operations were timed one by one.
    pub measured: Vec<Measured>,
    /// What they come from.
    pub description: Description,
}

/// Endings of the files of plots, as [`Part::of_suite`] orders those.
const PLOTS: [&str; 2] = [".svg", "-latency.svg"];

impl Figures<'_> {
    /// Writes NAME.csv, NAME.txt, NAME.svg, NAME.html and, where operations were timed one by one, NAME-latency.svg
    /// into the directory, which is made if it is missing.
    ///
    /// # Errors
    /// What the system says.
    pub fn write(self, out: &Path) -> Result<()> {
        fs::create_dir_all(out).map_err(Error::file(out))?;
        let write = |ending: &str, text: &str| {
            command::write(&out.join(format!("{}{ending}", self.name)), text)
        };
        write(".csv", &self.csv)?;
        write(".txt", &self.description.to_string())?;
        let caption = self.description.caption();
        let part = Part {
            title: String::new(),
            about: self.about.to_owned(),
            ..Part::of_suite(
                self.title,
                Length::Time,
                &self.measured,
                self.table,
                &caption,
            )
        };
        for (plot, ending) in part.plots.iter().zip(PLOTS) {
            write(ending, plot)?;
        }
        let page = Page {
            title: self.title.to_owned(),
            description: self.description,
            parts: vec![part],
        };
        write(".html", &page::format(&page))
    }
}
