#![no_std]
#![forbid(unsafe_code)]
//! What was measured to be fastest, looked up where models run: reads the tables that `analyze dispatch` writes, and gives
//! the same answers as libscout_dispatch. It needs `alloc` alone.
//!
//! ```no_run
//! use scout_dispatch::{Device, Op, Table};
//! let here = Device { name: "NVIDIA H200", capability: "9.0", driver: "580.159.04", ..Device::default() };
//! let bytes = std::fs::read("dispatch.json").unwrap();
//! let (table, warning) = Table::open(&bytes, &here).unwrap(); // where it fails, run the defaults
//! let mut key = Op { kind: "softmax", shape: &[1, 4096], dtype: Some("fp16"), ..Op::default() }.key().unwrap();
//! key.numbers_mut()[0] = 2048;
//! match table.find(&key) {
//!     Some(entry) => println!("{} {}", entry.implementation, entry.variant),
//!     None => println!("it was not measured: the default"),
//! }
//! ```
//!
//! A table never changes, and threads share it. To replace one while others read, hold an `Arc<Table>` and swap that.

extern crate alloc;

mod device;
mod index;
mod json;
mod key;
mod op;
mod table;

pub use device::{Device, Measured};
pub use key::{Key, KEY_ROOM, NUMBERS};
pub use op::{Op, Value};

use alloc::{string::String, vec::Vec};
use core::fmt;

/// Why there is no table. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No table, or one that contradicts itself.
    Bad(String),
    /// Of another device, driver branch or library version.
    Refused(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Bad(text) | Error::Refused(text) => f.write_str(text),
        }
    }
}

/// What an operation is to be run with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// The library's own default: nothing else was proven to be faster.
    #[default]
    Default,
    /// A library's algorithm other than its default.
    Tuned,
    /// A kernel that is no library's.
    Custom,
}

/// What was measured of one operation.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Entry {
    /// Canonical text.
    pub key: String,
    /// The report's id.
    pub operation: String,
    /// Default, tuned or custom.
    pub choice: Choice,
    /// "cublaslt"
    pub implementation: String,
    /// "algo=1,weight=transposed"
    pub variant: String,
    /// Whose algorithm it is, and its exact version. None: no library's.
    pub library: Option<(String, String)>,
    /// cuBLASLt's algorithm, to be given to `cublasLtMatmulAlgoCheck`; empty: none.
    pub algo: Vec<u8>,
    /// Everything that it needs to be run again: a JSON object on one line.
    pub config: String,
    /// How the weight is rearranged once, before the first launch. None: it is not.
    pub packing: Option<String>,
    /// What rearranging takes.
    pub pack_us: f64,
    /// What a rearranged weight takes.
    pub pack_bytes: i64,
    /// What a launch may use.
    pub workspace_bytes: i64,
    /// Median.
    pub expected_us: f64,
    /// Relative half width of its interval.
    pub expected_ci: f64,
    /// Median of the default.
    pub default_us: f64,
    /// Relative half width of its interval.
    pub default_ci: f64,
    /// Of expected over default, from neighbouring blocks; 1 where it is the default.
    pub ratio: f64,
    /// Relative half width of its interval; 0 where it is the default.
    pub ratio_ci: f64,
    /// That the expected time comes from.
    pub batches: i64,
    /// That the expected time comes from.
    pub launches: i64,
}

/// A dispatch table, checked and indexed.
pub struct Table {
    class: String,
    regime: String,
    device: Measured,
    entries: Vec<Entry>,
    index: index::Index,
}

impl Table {
    /// Reads a table and holds it against what this process runs on. The text beside it, if any, is a warning: another patch
    /// level of the driver's branch.
    pub fn open(text: &[u8], here: &Device<'_>) -> Result<(Table, Option<String>), Error> {
        let table = Table::read(text)?;
        match table.device.compare(here) {
            device::Match::Same => Ok((table, None)),
            device::Match::Patched(warning) => Ok((table, Some(warning))),
            device::Match::Other(why) => Err(Error::Refused(why)),
        }
    }

    /// Reads a table without a look at the device, for tools that only show it; nothing may be run by it then.
    pub fn read(text: &[u8]) -> Result<Table, Error> {
        let (reading, index) = table::Reading::of(text)?;
        let table::Reading { class, regime, device, entries, .. } = reading;
        Ok(Table { class, regime, device, entries, index })
    }

    /// The entry of exactly this operation. None: it was not measured, run the default.
    pub fn find(&self, key: &Key) -> Option<&Entry> {
        Some(&self.entries[self.index.find(key)?])
    }

    /// By canonical text (slower: it is taken apart first).
    pub fn find_text(&self, key: &str) -> Option<&Entry> {
        self.find(&Key::parse(key)?)
    }

    /// Of an operation that was not measured, but lies between two that were and agree: these two. What both name is to be
    /// run; nothing says how long it takes, but between the ends' times is to be expected.
    pub fn near(&self, key: &Key) -> Option<(&Entry, &Entry)> {
        let (lower, upper) = self.index.near(key)?;
        Some((&self.entries[lower], &self.entries[upper]))
    }

    /// All entries in the file's order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The device class that the table was measured on, as reports have it.
    pub fn class(&self) -> &str {
        &self.class
    }

    /// What all of it was measured under; times of another regime would be others.
    pub fn regime(&self) -> &str {
        &self.regime
    }

    /// What it was measured on, with the libraries that its entries need.
    pub fn device(&self) -> &Measured {
        &self.device
    }
}
