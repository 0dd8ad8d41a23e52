//! The same as libscout_dispatch and a generated dispatch.h: every lookup, every key, and every table that is refused, word
//! for word. tests/rust/run.sh links both, and names a table of ten thousand operations in SCOUT_TABLE.

mod common;

use common::Random;
use scout_dispatch::{Choice, Entry, Error, Key, Op, Table, Value, KEY_ROOM, NUMBERS};
use std::ffi::{CStr, CString};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::null;

#[repr(C)]
struct CKey {
    form_hash: u64,
    form_length: u32,
    count: u32,
    numbers: [i64; NUMBERS],
    form: [c_char; KEY_ROOM],
}

#[repr(C)]
struct CEntry {
    key: *const c_char,
    operation: *const c_char,
    choice: c_int,
    implementation: *const c_char,
    variant: *const c_char,
    library: *const c_char,
    version: *const c_char,
    algo: *const u8,
    algo_bytes: u32,
    config: *const c_char,
    packing: *const c_char,
    pack_us: f64,
    pack_bytes: i64,
    workspace_bytes: i64,
    expected_us: f64,
    expected_ci: f64,
    default_us: f64,
    default_ci: f64,
    ratio: f64,
    ratio_ci: f64,
    batches: i64,
    launches: i64,
}

#[repr(C)]
struct CField {
    name: *const c_char,
    text: *const c_char,
    numbers: *const i64,
    count: c_int,
    number: i64,
}

#[repr(C)]
struct COp {
    kind: *const c_char,
    what: *const c_char,
    shape: *const i64,
    rank: c_int,
    layout: *const c_char,
    mask: *const c_char,
    dtype: *const c_char,
    weight_dtype: *const c_char,
    out_dtype: *const c_char,
    weight_side: *const c_char,
    fields: *const CField,
    field_count: c_int,
}

#[repr(C)]
struct CView {
    index: *const c_void,
    holds: *mut c_void,
}

#[repr(C)]
struct CEnds {
    lower: *const CEntry,
    upper: *const CEntry,
}

#[link(name = "scout_dispatch_shim", kind = "static")]
extern "C" {
    fn shim_parse(key: *mut CKey, text: *const c_char, length: usize) -> c_int;
    fn shim_place(key: *const CKey, member: *const c_char, which: c_int) -> c_int;
    fn shim_write(op: *const COp, text: *mut c_char, room: usize) -> usize;
    fn shim_find(key: *const CKey) -> i64;
    fn shim_near(key: *const CKey, upper: *mut i64) -> i64;
}

#[link(name = "scout_dispatch", kind = "static")]
extern "C" {
    fn scout_dispatch_open_text(
        d: *mut *mut c_void,
        text: *const c_char,
        size: usize,
        device: *const c_void,
        note: *mut [c_char; 640],
    ) -> c_int;
    fn scout_dispatch_close(d: *mut c_void);
    fn scout_dispatch_begin(d: *mut c_void) -> CView;
    fn scout_dispatch_end(view: *mut CView);
    fn scout_dispatch_find(view: *const CView, key: *const CKey) -> *const CEntry;
    fn scout_dispatch_near(view: *const CView, key: *const CKey, ends: *mut CEnds) -> c_int;
    fn scout_dispatch_count(view: *const CView) -> usize;
    fn scout_dispatch_at(view: *const CView, number: usize) -> *const CEntry;
    fn scout_dispatch_class(view: *const CView) -> *const c_char;
}

/// A table of the library.
struct CTable {
    handle: *mut c_void,
    view: CView,
}

impl CTable {
    fn read(text: &[u8]) -> Result<CTable, Vec<u8>> {
        let (mut handle, mut note) = (std::ptr::null_mut(), [0; 640]);
        unsafe {
            let status =
                scout_dispatch_open_text(&mut handle, text.as_ptr() as *const c_char, text.len(), null(), &mut note);
            if status == 0 {
                return Ok(CTable { handle, view: scout_dispatch_begin(handle) });
            }
            Err(CStr::from_ptr(note.as_ptr()).to_bytes().to_vec())
        }
    }

    fn number(&self, e: *const CEntry) -> i64 {
        if e.is_null() {
            return -1;
        }
        unsafe { e.offset_from(scout_dispatch_at(&self.view, 0)) as i64 }
    }

    fn find(&self, key: &CKey) -> i64 {
        self.number(unsafe { scout_dispatch_find(&self.view, key) })
    }

    fn near(&self, key: &CKey) -> (i64, i64) {
        let mut ends = CEnds { lower: null(), upper: null() };
        unsafe { scout_dispatch_near(&self.view, key, &mut ends) };
        (self.number(ends.lower), self.number(ends.upper))
    }
}

impl Drop for CTable {
    fn drop(&mut self) {
        unsafe {
            scout_dispatch_end(&mut self.view);
            scout_dispatch_close(self.handle);
        }
    }
}

fn text_of(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    Some(unsafe { CStr::from_ptr(text) }.to_str().unwrap().to_string())
}

fn number(table: &Table, e: Option<&Entry>) -> i64 {
    e.map_or(-1, |e| table.entries().iter().position(|other| std::ptr::eq(other, e)).unwrap() as i64)
}

fn c_key(text: &str) -> Option<CKey> {
    let mut key = CKey { form_hash: 0, form_length: 0, count: 0, numbers: [0; NUMBERS], form: [0; KEY_ROOM] };
    let good = unsafe { shim_parse(&mut key, text.as_ptr() as *const c_char, text.len()) };
    (good == 1).then(|| key)
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-15 * b.abs()
}

fn same_entry(e: &Entry, c: &CEntry) {
    let algo =
        if c.algo.is_null() { &[] } else { unsafe { std::slice::from_raw_parts(c.algo, c.algo_bytes as usize) } };
    assert_eq!(Some(&e.key), text_of(c.key).as_ref());
    assert_eq!(Some(&e.operation), text_of(c.operation).as_ref());
    assert_eq!(e.choice, [Choice::Default, Choice::Tuned, Choice::Custom][c.choice as usize]);
    assert_eq!(Some(&e.implementation), text_of(c.implementation).as_ref());
    assert_eq!(Some(&e.variant), text_of(c.variant).as_ref());
    assert_eq!(e.library, text_of(c.library).map(|name| (name, text_of(c.version).unwrap())));
    assert_eq!(e.algo, algo);
    assert_eq!(Some(&e.config), text_of(c.config).as_ref());
    assert_eq!(e.packing, text_of(c.packing));
    assert_eq!((e.pack_bytes, e.workspace_bytes), (c.pack_bytes, c.workspace_bytes));
    assert_eq!((e.batches, e.launches), (c.batches, c.launches));
    let ours = [e.pack_us, e.expected_us, e.expected_ci, e.default_us, e.default_ci, e.ratio, e.ratio_ci];
    let theirs = [c.pack_us, c.expected_us, c.expected_ci, c.default_us, c.default_ci, c.ratio, c.ratio_ci];
    assert!(ours.iter().zip(theirs).all(|(&a, b)| close(a, b)), "{:?} and {:?}", ours, theirs);
}

/// A key of the table, another size of it, or something like a key.
fn question(random: &mut Random, table: &Table) -> String {
    let mut key = Key::parse(&table.entries()[random.below(table.entries().len())].key).unwrap();
    let count = key.numbers().len();
    let place = if random.below(4) > 0 { 0 } else { random.below(count) };
    match random.below(8) {
        0..=2 => {}
        3 | 4 => key.numbers_mut()[place] += 16 * (1 + random.below(64) as i64),
        5 => key.numbers_mut()[place] += random.below(3) as i64 - 1,
        6 => key.numbers_mut()[place] = [0, -1, i64::MAX, i64::MIN, 1 << 32][random.below(5)],
        _ => {
            let mut text = key.to_string().into_bytes();
            let at = random.below(text.len());
            text[at] = b"0,;=- %x\x01"[random.below(9)];
            return String::from_utf8(text).unwrap();
        }
    }
    key.to_string()
}

#[test]
fn ten_thousand_lookups_are_equal() {
    let text = std::fs::read(std::env::var("SCOUT_TABLE").expect("SCOUT_TABLE: a dispatch.json")).unwrap();
    let (table, library) = (Table::read(&text).unwrap(), CTable::read(&text).ok().unwrap());
    let mut random = Random(88172645463325252);
    let (mut found, mut between, mut refused) = (0, 0, 0);
    assert_eq!(table.entries().len(), unsafe { scout_dispatch_count(&library.view) });
    assert_eq!(Some(table.class()), text_of(unsafe { scout_dispatch_class(&library.view) }).as_deref());
    for (k, e) in table.entries().iter().enumerate() {
        same_entry(e, unsafe { &*scout_dispatch_at(&library.view, k) });
    }
    for _ in 0..10000 {
        let question = question(&mut random, &table);
        let (key, c) = match (Key::parse(&question), c_key(&question)) {
            (Some(key), Some(c)) => (key, c),
            (None, None) => {
                refused += 1;
                continue;
            }
            _ => panic!("{:?} is a key for one alone", question),
        };
        let mut upper = -1;
        let ours = (number(&table, table.find(&key)), number(&table, table.find_text(&question)));
        let ends = table.near(&key);
        let near = (number(&table, ends.map(|ends| ends.0)), number(&table, ends.map(|ends| ends.1)));
        assert_eq!(ours, (library.find(&c), unsafe { shim_find(&c) }), "{}", question);
        assert_eq!(near, library.near(&c), "{}", question);
        assert_eq!(near, (unsafe { shim_near(&c, &mut upper) }, upper), "{}", question);
        assert_eq!((key.numbers(), key.to_string()), (&c.numbers[..c.count as usize], question));
        for member in ["shape", "batch", "bias", "layout", "s", ""] {
            let name = CString::new(member).unwrap();
            for which in 0..4 {
                let theirs = unsafe { shim_place(&c, name.as_ptr(), which) };
                assert_eq!(key.place(member, which as usize).map_or(-1, |place| place as c_int), theirs);
            }
        }
        found += usize::from(ours.0 >= 0);
        between += usize::from(ends.is_some());
    }
    println!("{} found, {} between two, {} no keys", found, between, refused);
    assert!(found > 3000 && between > 300 && refused > 100);
}

const TEXTS: [&str; 10] = ["gemm", "rms", "a;b", "50%", "=", "\u{e9}", "\t", "", "fp16", "x\x7fy"];
const NUMBERS_OF: [i64; 7] = [0, 1, -1, 7, 4096, i64::MIN, i64::MAX];

/// Names of fields: all that the header knows a customary number of, and others.
fn names() -> Vec<String> {
    let header = concat!(env!("CARGO_MANIFEST_DIR"), "/../../dispatch/scout_dispatch_key.h");
    let text = std::fs::read_to_string(header).expect(header);
    let known = text.split("known[] = {").nth(1).and_then(|rest| rest.split("};").next()).unwrap();
    let mut names: Vec<String> =
        known.split("{\"").skip(1).map(|row| row.split('"').next().unwrap().to_string()).collect();
    assert!(names.len() > 20);
    names.extend(["kv_len", "weight_side", "a b", "zz", ""].iter().map(|name| name.to_string()));
    names
}

#[test]
fn ten_thousand_operations_have_equal_keys() {
    let names = names();
    let mut random = Random(362436069);
    let mut made = 0;
    for _ in 0..10000 {
        let long = "x%".repeat(random.below(500));
        let lists: Vec<Vec<i64>> =
            (0..6).map(|_| (0..random.below(5)).map(|_| NUMBERS_OF[random.below(7)]).collect()).collect();
        let maybe: Vec<Option<&str>> =
            (0..7).map(|_| (random.below(2) == 0).then(|| TEXTS[random.below(10)])).collect();
        let fields: Vec<(&str, Value)> = lists[1..]
            .iter()
            .map(|list| match random.below(4) {
                0 => (names[random.below(names.len())].as_str(), Value::Text(random.one_of(&TEXTS))),
                1 => (names[random.below(names.len())].as_str(), Value::Number(NUMBERS_OF[random.below(7)])),
                2 => (names[random.below(names.len())].as_str(), Value::Numbers(list)),
                _ if random.below(20) == 0 => ("long", Value::Text(&long)),
                _ => ("kv_heads", Value::Number(8)),
            })
            .collect();
        let op = Op {
            kind: TEXTS[random.below(10)],
            what: maybe[0],
            shape: &lists[0],
            layout: maybe[1],
            mask: maybe[2],
            dtype: maybe[3],
            weight_dtype: maybe[4],
            out_dtype: maybe[5],
            weight_side: maybe[6],
            fields: &fields,
        };
        let theirs = c_text(&op);
        let parsed = theirs.as_ref().and_then(|text| Key::parse(text));
        made += usize::from(parsed.is_some());
        assert_eq!(op.key(), parsed, "{:?}: {:?}", op, theirs);
    }
    assert!(made > 3000, "{}", made);
}

/// The canonical text as C writes it.
fn c_text(op: &Op) -> Option<String> {
    let kept = |text: &str| CString::new(text).unwrap();
    let kind = kept(op.kind);
    let texts: Vec<Option<CString>> =
        [op.what, op.layout, op.mask, op.dtype, op.weight_dtype, op.out_dtype, op.weight_side]
            .iter()
            .map(|text| text.map(kept))
            .collect();
    let at = |k: usize| texts[k].as_ref().map_or(null(), |text| text.as_ptr());
    let field_texts: Vec<(CString, Option<CString>)> = op
        .fields
        .iter()
        .map(|(name, value)| (kept(name), if let Value::Text(text) = value { Some(kept(text)) } else { None }))
        .collect();
    let fields: Vec<CField> = op
        .fields
        .iter()
        .zip(&field_texts)
        .map(|((_, value), (name, text))| CField {
            name: name.as_ptr(),
            text: text.as_ref().map_or(null(), |text| text.as_ptr()),
            numbers: if let Value::Numbers(numbers) = value { numbers.as_ptr() } else { null() },
            count: if let Value::Numbers(numbers) = value { numbers.len() as c_int } else { 0 },
            number: if let Value::Number(number) = value { *number } else { 0 },
        })
        .collect();
    let c = COp {
        kind: kind.as_ptr(),
        what: at(0),
        shape: op.shape.as_ptr(),
        rank: op.shape.len() as c_int,
        layout: at(1),
        mask: at(2),
        dtype: at(3),
        weight_dtype: at(4),
        out_dtype: at(5),
        weight_side: at(6),
        fields: fields.as_ptr(),
        field_count: fields.len() as c_int,
    };
    let mut text = [0; KEY_ROOM];
    let length = unsafe { shim_write(&c, text.as_mut_ptr(), text.len()) };
    (length > 0).then(|| text_of(text.as_ptr()).unwrap())
}

#[test]
fn hostile_tables_are_answered_alike() {
    let (mut good, mut bad) = (0, 0);
    let mut try_one = |text: &[u8]| match (Table::read(text), CTable::read(text)) {
        (Ok(ours), Ok(theirs)) => {
            good += 1;
            assert_eq!(ours.entries().len(), unsafe { scout_dispatch_count(&theirs.view) });
            for (k, e) in ours.entries().iter().enumerate() {
                same_entry(e, unsafe { &*scout_dispatch_at(&theirs.view, k) });
                let near = ours.near(&Key::parse(&e.key).unwrap()).is_some();
                assert_eq!(near, theirs.near(&c_key(&e.key).unwrap()).0 >= 0);
            }
        }
        (Err(Error::Bad(why)), Err(note)) => {
            bad += 1;
            // C cuts long texts of the file, also within a character, and writes '?' for what controls a terminal
            if let Some(said) = std::str::from_utf8(&note).ok().and_then(|s| s.strip_prefix("dispatch table: ")) {
                let plain: String = why.chars().map(|c| if c < ' ' || c == '\x7f' { '?' } else { c }).collect();
                assert_eq!(plain, said, "{}", String::from_utf8_lossy(text));
            }
        }
        (ours, theirs) => panic!(
            "{:?} and {:?} of {}",
            ours.err(),
            theirs.err().map(|note| String::from_utf8_lossy(&note).to_string()),
            String::from_utf8_lossy(&text[..text.len().min(4000)])
        ),
    };
    common::hostile(50000, &mut try_one);
    if let Ok(folder) = std::env::var("SCOUT_CORPUS") {
        for file in std::fs::read_dir(folder).unwrap() {
            try_one(&std::fs::read(file.unwrap().path()).unwrap());
        }
    }
    println!("{} good and {} bad tables", good, bad);
    assert!(good > 1000 && bad > 10000);
}
