//! Objects as an indented tree.

use std::io::Write;

use durum_format::content::printable;
use durum_format::types::{Strength, Value};

use super::contents::DEPTH;
use super::graph::{Graph, Link, is_null};
use crate::args::Inspect;
use crate::failure::Failure;
use crate::output::{count, size};

pub(super) fn print(
    pool: &str,
    graph: &Graph,
    options: &Inspect,
    out: &mut dyn Write,
) -> Result<(), Failure> {
    if graph.nodes.is_empty() {
        writeln!(out, "pool \"{pool}\" has no root object")?;
        return Ok(());
    }
    let mut printer = Printer {
        graph,
        out,
        printed: vec![false; graph.nodes.len()],
    };
    write!(printer.out, "root ")?;
    printer.node(0, 0)?;
    writeln!(printer.out)?;
    if graph.cut > 0 {
        writeln!(
            out,
            "{} not followed (--depth {}, --objects {})",
            count(graph.cut as u64, "pointer"),
            options.depth.unwrap_or(DEPTH),
            options.objects
        )?;
    }
    Ok(())
}

struct Printer<'a, 'o> {
    graph: &'a Graph,
    out: &'o mut dyn Write,
    printed: Vec<bool>,
}

impl Printer<'_, '_> {
    fn node(&mut self, index: usize, indent: usize) -> Result<(), Failure> {
        self.printed[index] = true;
        let found = &self.graph.nodes[index].found;
        let (number, bytes) = (self.graph.number(index), size(found.size));
        write!(
            self.out,
            "#{number} {} at {:#x}, {bytes}",
            found.type_name, found.address
        )?;
        match &found.value {
            Value::Struct { name, fields } if *name == found.type_name => {
                self.fields(index, fields, indent)
            }
            value => {
                self.line(indent + 2)?;
                self.value(index, value, indent + 2)
            }
        }
    }

    fn line(&mut self, indent: usize) -> Result<(), Failure> {
        Ok(write!(self.out, "\n{:indent$}", "")?)
    }

    fn fields(
        &mut self,
        index: usize,
        fields: &[(String, Value)],
        indent: usize,
    ) -> Result<(), Failure> {
        for (name, value) in fields {
            self.line(indent + 2)?;
            write!(self.out, "{name}: ")?;
            self.value(index, value, indent + 2)?;
        }
        Ok(())
    }

    fn value(&mut self, index: usize, value: &Value, indent: usize) -> Result<(), Failure> {
        match value {
            Value::Struct { name, fields } => {
                write!(self.out, "{name}")?;
                self.fields(index, fields, indent)
            }
            Value::Case { name, case, fields } => {
                write!(self.out, "{name}.{case}")?;
                self.fields(index, fields, indent)
            }
            Value::Array { elements, omitted } => self.array(index, elements, *omitted, indent),
            Value::Pointer {
                address, strength, ..
            } if *address != 0 => self.pointer(index, *address, *strength, indent),
            Value::Bytes { bytes, omitted } if bytes.iter().all(|byte| *byte == 0) => Ok(write!(
                self.out,
                "{} of zero",
                count(bytes.len() as u64 + omitted, "byte")
            )?),
            leaf => Ok(write!(self.out, "{leaf}")?),
        }
    }

    fn array(
        &mut self,
        index: usize,
        elements: &[Value],
        omitted: u64,
        indent: usize,
    ) -> Result<(), Failure> {
        write!(self.out, "[{}]", elements.len() as u64 + omitted)?;
        let mut at = 0;
        while at < elements.len() {
            let nulls = elements[at..]
                .iter()
                .take_while(|value| is_null(value))
                .count();
            self.line(indent + 2)?;
            if nulls > 1 {
                write!(self.out, "{at}-{}: null", at + nulls - 1)?;
                at += nulls;
            } else {
                write!(self.out, "{at}: ")?;
                self.value(index, &elements[at], indent + 2)?;
                at += 1;
            }
        }
        if omitted > 0 {
            self.line(indent + 2)?;
            write!(self.out, "... {omitted} more")?;
        }
        Ok(())
    }

    fn pointer(
        &mut self,
        index: usize,
        address: u64,
        strength: Strength,
        indent: usize,
    ) -> Result<(), Failure> {
        let arrow = match strength {
            Strength::Strong => "->",
            Strength::Weak => "~>",
        };
        match self.graph.link(index, address, strength) {
            Link::Node {
                index: child,
                offset: 0,
                is_here: true,
            } if !self.printed[child] => {
                write!(self.out, "{arrow} ")?;
                self.node(child, indent)
            }
            Link::Node {
                index: child,
                offset,
                is_here,
            } => {
                write!(self.out, "{arrow} #{}", self.graph.number(child))?;
                if offset > 0 {
                    write!(self.out, "+{offset}")?;
                }
                if self.graph.is_ancestor(child, index) && strength == Strength::Strong {
                    write!(self.out, " (cycle)")?;
                }
                if is_here && !self.printed[child] {
                    // A pointer into the object, not to its start, is the only one that leads to it.
                    write!(self.out, ", which is ")?;
                    self.node(child, indent)?;
                }
                Ok(())
            }
            Link::Cut => Ok(write!(self.out, "{arrow} {address:#x} (not followed)")?),
            Link::Other(what) => {
                let what = printable(what);
                Ok(write!(self.out, "{arrow} {address:#x} ({what})")?)
            }
        }
    }
}
