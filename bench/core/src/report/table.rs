//! A table: as text on a terminal, and in the page of a run.

use std::fmt;

use super::html::escape;

/// The name of a column, and what its figures are in; "" where the name says it or they are words.
#[derive(Clone, Debug)]
pub struct Head {
    /// On the terminal and in the page.
    pub name: String,
    /// In the page alone.
    pub unit: &'static str,
}

/// Lines that have a cell for each column.
#[derive(Clone, Debug)]
pub struct Table {
    /// What it is about; "" if that was said before.
    pub caption: String,
    /// Its columns.
    pub heads: Vec<Head>,
    /// The columns at the left that are words.
    pub words: usize,
    /// Its lines.
    pub lines: Vec<Vec<String>>,
}

impl Table {
    /// Without lines. The first two columns are words.
    pub fn new<N: Into<String>>(heads: impl IntoIterator<Item = (N, &'static str)>) -> Table {
        let head = |(name, unit): (N, &'static str)| Head {
            name: name.into(),
            unit,
        };
        Table {
            caption: String::new(),
            heads: heads.into_iter().map(head).collect(),
            words: 2,
            lines: Vec::new(),
        }
    }

    /// The table in HTML. The first cell of a line is its name; where it is empty, the line belongs to the one above.
    pub(super) fn html(&self) -> String {
        let mut html = "<div class=\"table\" tabindex=\"0\">\n<table>\n".to_owned();
        if !self.caption.is_empty() {
            html += &format!("<caption>{}</caption>\n", escape(&self.caption));
        }
        html += "<thead><tr>";
        for (column, head) in self.heads.iter().enumerate() {
            let unit = match head.unit {
                "" => String::new(),
                unit => format!(" <small>{}</small>", escape(unit)),
            };
            let name = escape(&head.name);
            html += &format!("<th scope=\"col\"{}>{name}{unit}</th>", self.class(column));
        }
        html += "</tr></thead>\n<tbody>\n";
        for line in &self.lines {
            let begins = line.first().is_some_and(|name| !name.is_empty());
            html += if begins {
                "<tr class=\"first\">"
            } else {
                "<tr>"
            };
            for (column, cell) in line.iter().enumerate() {
                let (cell, class) = (escape(cell), self.class(column));
                html += &match column {
                    0 if begins => format!("<th scope=\"row\"{class}>{cell}</th>"),
                    _ => format!("<td{class}>{cell}</td>"),
                };
            }
            html += "</tr>\n";
        }
        html + "</tbody>\n</table>\n</div>\n"
    }

    fn class(&self, column: usize) -> &'static str {
        if column < self.words {
            " class=\"word\""
        } else {
            ""
        }
    }
}

/// Columns side by side, words on the left, numbers on the right.
impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.heads.iter().map(|head| head.name.clone()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&names).chain(&self.lines).collect();
        let width = |column: usize| {
            let cells = lines.iter().filter_map(|line| line.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..names.len()).map(width).collect();
        for line in lines {
            let mut text = String::new();
            for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
                if column > 0 {
                    text.push_str("  ");
                }
                text += &if column < self.words {
                    format!("{cell:<width$}")
                } else {
                    format!("{cell:>width$}")
                };
            }
            writeln!(f, "{}", text.trim_end())?;
        }
        Ok(())
    }
}
