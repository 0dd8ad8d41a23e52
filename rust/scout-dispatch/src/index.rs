//! How entries are found: forms that they share, their numbers, the hash table over them, and the ranges between them, each
//! of which must be what its two entries say.

use crate::{key::Key, table::Between, Choice, Entry, Error};
use alloc::{format, string::String, vec, vec::Vec};
use core::cmp::Ordering;

/// A table that needs more was made to collide.
const PROBES: usize = 256;
/// Alignment that kernels tell apart.
const LARGEST_STEP: i64 = 16;

struct Form {
    text: Vec<u8>,
    count: usize,
}

/// `entry`: from 1, 0: free.
#[derive(Clone, Copy, Default)]
struct Slot {
    tag: u32,
    entry: u32,
}

/// Where an entry's numbers stand.
struct Numbers {
    form: usize,
    first: usize,
}

/// Between two entries that differ in one size alone. `mask`: the places in the key's numbers where that size stands.
struct Range {
    form: usize,
    mask: u32,
    lower: usize,
    upper: usize,
    from: i64,
    to: i64,
    step: i64,
}

/// Forms are sorted by text; ranges by form, mask, the numbers that stay and the size, so that those of one form that may
/// hold one key lie side by side.
pub(crate) struct Index {
    slots: Vec<Slot>,
    forms: Vec<Form>,
    numbers: Vec<i64>,
    entries: Vec<Numbers>,
    ranges: Vec<Range>,
}

/// One line of at most 200 bytes of the key.
fn fail<T>(what: &str, key: &str) -> Result<T, Error> {
    let end = (0..=key.len().min(200)).rev().find(|&k| key.is_char_boundary(k)).unwrap_or(0);
    let plain: String = key[..end].chars().map(|c| if c < ' ' || c == '\x7f' { '?' } else { c }).collect();
    Err(Error::Bad(format!("{}: {}", what, plain)))
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

fn under(mask: u32, k: usize) -> bool {
    mask >> k & 1 == 1
}

/// All numbers but those under the mask.
fn order_beside(a: &[i64], b: &[i64], mask: u32) -> Ordering {
    let beside = |numbers: &[i64], k: usize| if under(mask, k) { 0 } else { numbers[k] };
    (0..a.len().min(b.len())).map(|k| beside(a, k).cmp(&beside(b, k))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
}

/// The one number under the mask; 0 (which no range holds) where there are several.
fn size_under(numbers: &[i64], mask: u32) -> i64 {
    let mut size = 0;
    for (k, &number) in numbers.iter().enumerate() {
        if !under(mask, k) {
            continue;
        }
        if size != 0 && number != size {
            return 0;
        }
        size = number;
    }
    size
}

/// An algorithm is told by its bytes (its variant is its rank, which goes by the shape), all else by its variant and
/// configuration. What is the default anyway needs no range.
fn decided_alike(a: &Entry, b: &Entry) -> bool {
    a.choice != Choice::Default
        && a.choice == b.choice
        && a.packing == b.packing
        && a.implementation == b.implementation
        && a.algo == b.algo
        && (!a.algo.is_empty() || (a.variant == b.variant && a.config == b.config))
}

/// The sizes that a range may hold: at most twice the smaller one, and aligned as both ends are.
fn is_proven_size(r: &Between) -> bool {
    let mut step = 1;
    while step < LARGEST_STEP && r.from % (2 * step) == 0 && r.to % (2 * step) == 0 {
        step *= 2;
    }
    r.to - r.from <= r.from && r.step == step
}

impl Index {
    pub fn build(entries: &[Entry], ranges: &[Between]) -> Result<Index, Error> {
        let mut keys = Vec::with_capacity(entries.len());
        let mut index = Index {
            slots: Vec::new(),
            forms: Vec::new(),
            numbers: Vec::new(),
            entries: Vec::with_capacity(entries.len()),
            ranges: Vec::new(),
        };
        for entry in entries {
            match Key::parse(&entry.key) {
                Some(key) => {
                    index.forms.push(Form { text: key.form().to_vec(), count: key.numbers().len() });
                    index.entries.push(Numbers { form: 0, first: index.numbers.len() });
                    index.numbers.extend_from_slice(key.numbers());
                    keys.push(key.hash());
                }
                None => return fail("no canonical key, or one of more than 1023 bytes", &entry.key),
            }
        }
        index.share_forms();
        index.fill_slots(entries, &keys)?;
        index.fill_ranges(entries, ranges)?;
        Ok(index)
    }

    /// Sorted and each once; entries learn which is theirs.
    fn share_forms(&mut self) {
        let mut order: Vec<usize> = (0..self.forms.len()).collect();
        let mut shared: Vec<Form> = Vec::new();
        order.sort_unstable_by(|&a, &b| self.forms[a].text.cmp(&self.forms[b].text));
        for k in order {
            let form = &mut self.forms[k];
            if shared.last().map_or(true, |last| last.text != form.text) {
                shared.push(Form { text: core::mem::take(&mut form.text), count: form.count });
            }
            self.entries[k].form = shared.len() - 1;
        }
        self.forms = shared;
    }

    fn fill_slots(&mut self, entries: &[Entry], hashes: &[u64]) -> Result<(), Error> {
        let mut room = 8;
        while 3 * room < 4 * (entries.len() + 1) {
            room *= 2;
        }
        self.slots = vec![Slot::default(); room];
        for (k, &hash) in hashes.iter().enumerate() {
            let mut at = hash as usize & (room - 1);
            let mut probes = 0;
            while self.slots[at].entry != 0 {
                let there = self.slots[at].entry as usize - 1;
                if self.entries[there].form == self.entries[k].form && self.numbers_of(there) == self.numbers_of(k) {
                    return fail("a key is given twice", &entries[k].key);
                }
                probes += 1;
                if probes == PROBES {
                    return fail("too many keys collide", &entries[k].key);
                }
                at = (at + 1) & (room - 1);
            }
            self.slots[at] = Slot { tag: tag(hash), entry: k as u32 + 1 };
        }
        Ok(())
    }

    fn numbers_of(&self, entry: usize) -> &[i64] {
        let Numbers { form, first } = self.entries[entry];
        &self.numbers[first..first + self.forms[form].count]
    }

    /// At least one slot is free, so this ends.
    pub fn find(&self, key: &Key) -> Option<usize> {
        let hash = key.hash();
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        loop {
            let slot = self.slots[at];
            let entry = (slot.entry as usize).checked_sub(1)?;
            if slot.tag == tag(hash)
                && self.numbers_of(entry) == key.numbers()
                && self.forms[self.entries[entry].form].text == key.form()
            {
                return Some(entry);
            }
            at = (at + 1) & mask;
        }
    }

    // ---- ranges ----

    /// The two ends differ in one size alone, at all places where the mask says so, and were decided alike.
    fn ends_agree(&self, entries: &[Entry], r: &Between, upper: usize) -> bool {
        let (low, high) = (self.numbers_of(r.lower), self.numbers_of(upper));
        self.entries[r.lower].form == self.entries[upper].form
            && (low.len()..32).all(|k| !under(r.mask, k))
            && order_beside(low, high, r.mask).is_eq()
            && size_under(low, r.mask) == r.from
            && size_under(high, r.mask) == r.to
            && is_proven_size(r)
            && decided_alike(&entries[r.lower], &entries[upper])
    }

    fn order(&self, a: &Range, b: &Range) -> Ordering {
        self.order_of_line(a, b).then(a.from.cmp(&b.from))
    }

    fn order_of_line(&self, a: &Range, b: &Range) -> Ordering {
        let numbers = || order_beside(self.numbers_of(a.lower), self.numbers_of(b.lower), a.mask);
        a.form.cmp(&b.form).then(a.mask.cmp(&b.mask)).then_with(numbers)
    }

    fn fill_ranges(&mut self, entries: &[Entry], between: &[Between]) -> Result<(), Error> {
        let mut ranges = Vec::with_capacity(between.len());
        for r in between {
            let upper = Key::parse(&r.upper).and_then(|key| self.find(&key));
            match upper.filter(|&upper| self.ends_agree(entries, r, upper)) {
                Some(upper) => ranges.push(Range {
                    form: self.entries[r.lower].form,
                    mask: r.mask,
                    lower: r.lower,
                    upper,
                    from: r.from,
                    to: r.to,
                    step: r.step,
                }),
                None => return fail("a range differs from its two entries", &entries[r.lower].key),
            }
        }
        ranges.sort_unstable_by(|a, b| self.order(a, b));
        // Neighbours of one line touch at most: what is asked for lies in one of them.
        for pair in ranges.windows(2) {
            if self.order_of_line(&pair[0], &pair[1]).is_eq() && pair[1].from < pair[0].to {
                return fail("two ranges overlap", &entries[pair[1].lower].key);
            }
        }
        self.ranges = ranges;
        Ok(())
    }

    /// The two ends of the proven range that a key lies in, though it was not measured itself.
    pub fn near(&self, key: &Key) -> Option<(usize, usize)> {
        let form = self.forms.binary_search_by(|form| form.text.as_slice().cmp(key.form())).ok()?;
        let mut next = self.ranges.partition_point(|r| r.form < form);
        // Masks of this form in turn, in the order in which its ranges lie.
        while let Some(mask) = self.ranges.get(next).filter(|r| r.form == form).map(|r| r.mask) {
            let size = size_under(key.numbers(), mask);
            let line = |r: &Range| order_beside(self.numbers_of(r.lower), key.numbers(), mask);
            // The last one at or before this size is the only one that may hold it.
            let at_or_before = |r: &Range| {
                let place = r.form.cmp(&form).then(r.mask.cmp(&mask)).then_with(|| line(r)).then(r.from.cmp(&size));
                place.is_le()
            };
            let found = self.ranges.partition_point(at_or_before).checked_sub(1).map(|k| &self.ranges[k]);
            if let Some(r) = found {
                let holds = size > r.from && size < r.to && size % r.step == 0;
                if r.form == form && r.mask == mask && holds && line(r).is_eq() {
                    return Some((r.lower, r.upper));
                }
            }
            next = self.ranges.partition_point(|r| (r.form, r.mask) <= (form, mask));
        }
        None
    }
}
