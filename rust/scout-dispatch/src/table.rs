//! What dispatch.json means: its members, and which of them contradict each other. docs/formats.md describes it.

use crate::{
    index::Index,
    json::{Json, Read},
    key::NUMBERS,
    Choice, Entry, Error, Measured,
};
use alloc::{format, string::String, string::ToString, vec::Vec};

const SCHEMA_PREFIX: &str = "ceiling-scout/dispatch/";
const SCHEMA: &str = "ceiling-scout/dispatch/1";
const CHOICES: [(&str, Choice); 3] =
    [("default", Choice::Default), ("tuned", Choice::Tuned), ("custom", Choice::Custom)];
const TABLE_BYTES: usize = 256 << 20;
const ENTRIES: usize = 1 << 20;
const LIBRARIES: usize = 64;

/// A range as the file has it: `lower` is the entry that it stands with, the upper one is told by its key.
#[derive(Default)]
pub(crate) struct Between {
    pub lower: usize,
    pub upper: String,
    pub from: i64,
    pub to: i64,
    pub step: i64,
    pub mask: u32,
}

/// Everything that a file says.
#[derive(Default)]
pub(crate) struct Reading {
    pub class: String,
    pub regime: String,
    pub device: Measured,
    pub entries: Vec<Entry>,
    libraries: Vec<(String, String)>, // of the device class
    ranges: Vec<Between>,
}

fn filled(json: &Json<'_>, text: Option<String>, what: &str) -> Read<String> {
    match text {
        Some(text) if !text.is_empty() => Ok(text),
        _ => json.fail(&format!("{} is empty", what)),
    }
}

fn given(json: &Json<'_>, text: Option<String>, what: &str) -> Read<String> {
    text.map_or_else(|| json.fail(&format!("{} is empty", what)), Ok)
}

/// A name and a version.
fn read_library(json: &mut Json<'_>) -> Read<(Option<String>, Option<String>)> {
    let (mut name, mut version) = (None, None);
    json.object(&[("name", true), ("version", true)], &mut |json, member| {
        let text = json.maybe_text()?;
        *(if member == "name" { &mut name } else { &mut version }) = text;
        Ok(())
    })?;
    Ok((name, version))
}

fn read_packing(json: &mut Json<'_>, e: &mut Entry) -> Read<()> {
    json.object(&[("how", true), ("us", false), ("bytes", false)], &mut |json, member| {
        match member {
            "how" => e.packing = json.maybe_text()?,
            "us" => e.pack_us = json.part()?,
            _ => e.pack_bytes = json.count()?,
        }
        Ok(())
    })
}

fn read_proof(json: &mut Json<'_>, e: &mut Entry) -> Read<()> {
    const MEMBERS: [(&str, bool); 6] = [
        ("ratio", true),
        ("ratio_ci", true),
        ("expected_ci", true),
        ("default_ci", true),
        ("batches", true),
        ("launches", true),
    ];
    json.object(&MEMBERS, &mut |json, member| {
        match member {
            "ratio" => e.ratio = json.time()?,
            "ratio_ci" => e.ratio_ci = json.part()?,
            "expected_ci" => e.expected_ci = json.part()?,
            "default_ci" => e.default_ci = json.part()?,
            "batches" => e.batches = json.count()?,
            _ => e.launches = json.count()?,
        }
        Ok(())
    })
}

fn read_place(json: &mut Json<'_>, mask: &mut u32) -> Read<()> {
    let place = json.integer()?;
    if !(0..NUMBERS as i64).contains(&place) || *mask >> place & 1 == 1 {
        return json.fail("no key has this position, or it is listed twice");
    }
    *mask |= 1 << place;
    Ok(())
}

fn read_range(json: &mut Json<'_>, lower: usize) -> Read<Between> {
    const MEMBERS: [(&str, bool); 5] =
        [("places", true), ("from", true), ("to", true), ("step", true), ("upper", true)];
    let mut range = Between { lower, ..Between::default() };
    let mut upper = None;
    json.object(&MEMBERS, &mut |json, member| {
        match member {
            "places" => json.array(&mut |json| read_place(json, &mut range.mask))?,
            "from" => range.from = json.count()?,
            "to" => range.to = json.count()?,
            "step" => range.step = json.count()?,
            _ => upper = json.maybe_text()?,
        }
        Ok(())
    })?;
    range.upper = filled(json, upper, "the upper end of a range")?;
    if range.mask == 0 || range.from < 1 || range.to <= range.from || range.step < 1 {
        return json.fail("a range has no size, or no position in the key");
    }
    Ok(range)
}

/// What an entry says, before it is checked.
#[derive(Default)]
struct Unchecked {
    key: Option<String>,
    operation: Option<String>,
    choice: Option<String>,
    implementation: Option<String>,
    variant: Option<String>,
    library: Option<(Option<String>, Option<String>)>,
    entry: Entry,
}

impl Reading {
    fn read_device(&mut self, json: &mut Json<'_>) -> Read<()> {
        const MEMBERS: [(&str, bool); 8] = [
            ("class", true),
            ("name", true),
            ("capability", true),
            ("driver", true),
            ("units", false),
            ("memory_mib", false),
            ("power_limit_w", false),
            ("libraries", true),
        ];
        let (mut class, mut name, mut capability, mut driver) = (None, None, None, None);
        json.object(&MEMBERS, &mut |json, member| {
            match member {
                "class" => class = json.maybe_text()?,
                "name" => name = json.maybe_text()?,
                "capability" => capability = json.maybe_text()?,
                "driver" => driver = json.maybe_text()?,
                "units" => self.device.units = json.count()?,
                "memory_mib" => self.device.memory_mib = json.count()?,
                "power_limit_w" => self.device.power_limit_w = json.count()?,
                _ => json.array(&mut |json| self.read_known_library(json))?,
            }
            Ok(())
        })?;
        self.class = filled(json, class, "the class")?;
        self.device.name = filled(json, name, "the device's name")?;
        self.device.capability = filled(json, capability, "capability")?;
        self.device.driver = filled(json, driver, "the driver")?;
        Ok(())
    }

    fn read_known_library(&mut self, json: &mut Json<'_>) -> Read<()> {
        let (name, version) = read_library(json)?;
        let name = filled(json, name, "a library's name")?;
        let version = filled(json, version, "a library's version")?;
        if self.libraries.len() == LIBRARIES || self.libraries.iter().any(|known| known.0 == name) {
            return json.fail("a library is listed twice, or there are too many of them");
        }
        self.libraries.push((name, version));
        Ok(())
    }

    /// A library that an entry needs is one of its device class, in that version.
    fn need_library(&mut self, json: &Json<'_>, name: &str, version: Option<&str>) -> Read<()> {
        let known = self.libraries.iter().find(|known| known.0 == name);
        match known {
            Some(known) if Some(known.1.as_str()) == version => {
                if !self.device.libraries.contains(known) {
                    self.device.libraries.push(known.clone());
                }
                Ok(())
            }
            _ => json.fail("an entry needs a library that is not one of the device's"),
        }
    }

    fn check_entry(&mut self, json: &Json<'_>, read: Unchecked) -> Read<Entry> {
        let mut e = read.entry;
        match CHOICES.iter().find(|known| Some(known.0) == read.choice.as_deref()) {
            Some(known) => e.choice = known.1,
            None => return json.fail("a choice is default, tuned or custom"),
        }
        e.key = filled(json, read.key, "a key")?;
        e.operation = given(json, read.operation, "operation")?;
        e.implementation = filled(json, read.implementation, "implementation")?;
        e.variant = given(json, read.variant, "variant")?;
        if let Some((Some(name), version)) = read.library {
            self.need_library(json, &name, version.as_deref())?;
            e.library = version.map(|version| (name, version));
        }
        Ok(e)
    }

    fn read_entry(&mut self, json: &mut Json<'_>) -> Read<()> {
        const MEMBERS: [(&str, bool); 14] = [
            ("key", true),
            ("operation", true),
            ("choice", true),
            ("implementation", true),
            ("variant", true),
            ("library", false),
            ("algo", false),
            ("config", true),
            ("packing", false),
            ("workspace_bytes", false),
            ("expected_us", true),
            ("default_us", true),
            ("proof", true),
            ("ranges", false),
        ];
        let mut read = Unchecked::default();
        let lower = self.entries.len();
        json.object(&MEMBERS, &mut |json, member| {
            match member {
                "key" => read.key = json.maybe_text()?,
                "operation" => read.operation = json.maybe_text()?,
                "choice" => read.choice = json.maybe_text()?,
                "implementation" => read.implementation = json.maybe_text()?,
                "variant" => read.variant = json.maybe_text()?,
                "library" => read.library = Some(read_library(json)?),
                "algo" => read.entry.algo = json.hex()?,
                "config" => read.entry.config = json.raw()?,
                "packing" => read_packing(json, &mut read.entry)?,
                "workspace_bytes" => read.entry.workspace_bytes = json.count()?,
                "expected_us" => read.entry.expected_us = json.time()?,
                "default_us" => read.entry.default_us = json.time()?,
                "proof" => read_proof(json, &mut read.entry)?,
                _ => json.array(&mut |json| {
                    self.ranges.push(read_range(json, lower)?);
                    Ok(())
                })?,
            }
            Ok(())
        })?;
        let entry = self.check_entry(json, read)?;
        if self.entries.len() == ENTRIES {
            return json.fail(&format!("it has more than {} entries", ENTRIES));
        }
        self.entries.push(entry);
        Ok(())
    }

    fn read_all(&mut self, json: &mut Json<'_>) -> Read<()> {
        const MEMBERS: [(&str, bool); 5] =
            [("schema", true), ("device", true), ("regime", true), ("method", true), ("entries", true)];
        let mut regime = None;
        json.object(&MEMBERS, &mut |json, member| {
            match member {
                "schema" => read_schema(json)?,
                "device" => self.read_device(json)?,
                "regime" => regime = json.maybe_text()?,
                "method" => {
                    json.count()?;
                }
                // Entries are checked against the device, so that must come first: as `analyze dispatch` writes it.
                _ if self.device.name.is_empty() => return json.fail("\"device\" must come before \"entries\""),
                _ => json.array(&mut |json| self.read_entry(json))?,
            }
            Ok(())
        })?;
        json.end()?;
        self.regime = filled(json, regime, "the regime")?;
        Ok(())
    }

    pub fn of(text: &[u8]) -> Result<(Reading, Index), Error> {
        if text.len() > TABLE_BYTES {
            return Err(Error::Bad(format!("it has more than {} MiB", TABLE_BYTES >> 20)));
        }
        let mut reading = Reading::default();
        reading.read_all(&mut Json::new(text))?;
        let index = Index::build(&reading.entries, &reading.ranges)?;
        Ok((reading, index))
    }
}

/// Written first, and so looked at before anything else.
fn read_schema(json: &mut Json<'_>) -> Read<()> {
    let schema = json.maybe_text()?.unwrap_or_default();
    if schema == SCHEMA {
        return Ok(());
    }
    match schema.strip_prefix(SCHEMA_PREFIX) {
        Some(version) => {
            let version: String = version.chars().take(20).collect();
            json.fail(&format!("it is of version {}, only version 1 is known here", version))
        }
        None => json.fail(&("it is not a dispatch table: \"schema\" is not ".to_string() + SCHEMA)),
    }
}
