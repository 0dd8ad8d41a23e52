//! Which device, driver and libraries a table was measured with, and whether this process has the same. A table from
//! another one is refused with one line that names both: what was fast there may be slow here, or not run at all.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

/// What this process runs on. Name, capability and driver must be told; so must every library that the table's entries need.
/// What is 0 is not compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Device<'a> {
    /// "NVIDIA H200"
    pub name: &'a str,
    /// "9.0"
    pub capability: &'a str,
    /// "580.159.04"; what comes before the first dot is its branch.
    pub driver: &'a str,
    pub units: i64,
    pub memory_mib: i64,
    pub power_limit_w: i64,
    /// Names and versions, exactly as `scout_batch --list-devices` writes them: ("cublaslt", "13.1.0").
    pub libraries: &'a [(&'a str, &'a str)],
}

/// What a table was measured on.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    pub name: String,
    pub capability: String,
    pub driver: String,
    pub units: i64,
    pub memory_mib: i64,
    pub power_limit_w: i64,
    /// Those that entries need.
    pub libraries: Vec<(String, String)>,
}

pub(crate) enum Match {
    Same,
    /// Another patch level of the driver's branch: the table may be used.
    Patched(String),
    Other(String),
}

/// Texts may come from a file: what could break a line becomes '?', what is longer than any name is cut.
fn plain(text: &str) -> String {
    if text.is_empty() {
        return "(not given)".to_string();
    }
    text.bytes().take(96).map(|c| if matches!(c, b' '..=b'~') { char::from(c) } else { '?' }).collect()
}

fn both(what: &str, there: &str, here: &str) -> String {
    format!("the table was measured with {} {}, here it is {}", plain(what), plain(there), plain(here))
}

fn other(what: &str, there: &str, here: &str) -> String {
    both(what, there, here) + ": it is not used; measure here (scout_batch) and make one (analyze dispatch)"
}

fn branch(driver: &str) -> &str {
    driver.split('.').next().unwrap_or("")
}

impl Measured {
    fn difference(&self, here: &Device<'_>) -> Option<String> {
        let texts = [("device", &self.name, here.name), ("capability", &self.capability, here.capability)];
        let numbers = [
            ("multiprocessors", self.units, here.units),
            ("MiB of memory", self.memory_mib, here.memory_mib),
            ("a power limit in watts of", self.power_limit_w, here.power_limit_w),
        ];
        for (what, there, here) in texts {
            if there.is_empty() || there != here {
                return Some(other(what, there, here));
            }
        }
        for (what, there, here) in numbers {
            if there != here && there != 0 && here != 0 {
                return Some(other(what, &there.to_string(), &here.to_string()));
            }
        }
        for (name, version) in &self.libraries {
            let found = here.libraries.iter().find(|library| library.0 == name).map_or("", |library| library.1);
            if version != found {
                return Some(other(name, version, found));
            }
        }
        if branch(&self.driver).is_empty() || branch(&self.driver) != branch(here.driver) {
            return Some(other("driver", &self.driver, here.driver));
        }
        None
    }

    pub(crate) fn compare(&self, here: &Device<'_>) -> Match {
        match self.difference(here) {
            Some(text) => Match::Other(text),
            None if self.driver == here.driver => Match::Same,
            None => Match::Patched(both("driver", &self.driver, here.driver) + ": the same branch, it is used"),
        }
    }
}
