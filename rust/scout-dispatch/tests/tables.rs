//! What a table answers, and that no text makes its reader panic or take more memory than it may.

mod common;

use scout_dispatch::{Choice, Device, Error, Key, Op, Table, Value};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Counts what is taken, and the most of it.
struct Counted;
static TAKEN: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST.fetch_max(TAKEN.fetch_add(layout.size(), Relaxed) + layout.size(), Relaxed);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        TAKEN.fetch_sub(layout.size(), Relaxed);
        System.dealloc(at, layout)
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

fn full() -> Vec<u8> {
    common::seeds().swap_remove(0)
}

fn here() -> Device<'static> {
    let libraries = &[("cudnn", "9.19.0"), ("cublaslt", "13.1.0")];
    Device { name: "GPU", capability: "9.0", driver: "580.1", libraries, ..Device::default() }
}

fn gemm(m: i64) -> Key {
    Key::parse(&format!("gemm;shape={},8,8;layout=nn;type=fp16", m)).unwrap()
}

#[test]
fn entries_are_found() {
    let table = Table::read(&full()).unwrap();
    let e = table.find(&gemm(64)).unwrap();
    assert_eq!((e.operation.as_str(), e.choice, e.algo.as_slice()), ("a", Choice::Tuned, &[0x42][..]));
    assert_eq!((e.config.as_str(), e.packing.as_deref()), ("{\"a\":[1,{\"b\":\"\\u00e9\"}]}", Some("transposed")));
    assert_eq!((e.pack_us, e.pack_bytes, e.default_us, e.launches), (1.5, 8, 10.0, 400));
    assert_eq!(e.library, Some(("cublaslt".to_string(), "13.1.0".to_string())));
    assert!(table.find(&gemm(65)).is_none() && table.find_text("").is_none());
    assert_eq!(table.entries().len(), 2);
    assert_eq!((table.class().len() > 10, table.regime()), (true, "sustained-model-graph"));
}

#[test]
fn what_lies_between_two_has_both() {
    let table = Table::read(&full()).unwrap();
    for m in 0..200 {
        let inside = m > 64 && m < 128 && m % 16 == 0;
        let ends = table.near(&gemm(m)).map(|(a, b)| (a.operation.clone(), b.operation.clone()));
        assert_eq!(ends, inside.then(|| ("a".to_string(), "b".to_string())), "{}", m);
    }
}

#[test]
fn another_device_is_refused_in_one_line() {
    let text = full();
    assert_eq!(Table::open(&text, &here()).unwrap().1, None);
    let warned = Table::open(&text, &Device { driver: "580.2", ..here() }).unwrap().1.unwrap();
    assert_eq!(warned, "the table was measured with driver 580.1, here it is 580.2: the same branch, it is used");
    let others = [
        Device { name: "GPU\n2", ..here() },
        Device { capability: "", ..here() },
        Device { driver: "570.1", ..here() },
        Device { units: 131, ..here() },
        Device { libraries: &[("cublaslt", "13.1.1")], ..here() },
        Device { libraries: &[], ..here() },
    ];
    for other in others {
        match Table::open(&text, &other) {
            Err(Error::Refused(why)) => assert!(why.contains(", here it is ") && !why.contains('\n'), "{}", why),
            _ => panic!("{:?} was not refused", other),
        }
    }
}

#[test]
fn keys_are_written_and_read() {
    let op = Op {
        kind: "attention",
        shape: &[1, 32, i64::MIN, 128],
        mask: Some("additive"),
        dtype: Some("bf16"),
        out_dtype: Some("bf16"),
        fields: &[
            ("scale", Value::Text("0.125")),
            ("chain", Value::Text("add(v);gelu 50%=\t")),
            ("stride", Value::Numbers(&[1, 1])),
            ("kv_heads", Value::Number(8)),
        ],
        ..Op::default()
    };
    let key = op.key().unwrap();
    let text = "attention;shape=1,32,-9223372036854775808,128;mask=additive;type=bf16;\
                chain=add(v)%3bgelu%2050%25%3d%09;kv_heads=8;scale=0.125";
    assert_eq!(key.to_string(), text);
    assert_eq!(Key::parse(text).as_ref(), Some(&key));
    assert_eq!((key.place("kv_heads", 0), key.place("shape", 3), key.place("scale", 0)), (Some(4), Some(3), None));
    let long = "x".repeat(scout_dispatch::KEY_ROOM);
    assert!(Op { kind: "gemm", what: Some(&long), ..Op::default() }.key().is_none());
    assert!(Key::parse(&long[1..]).is_some() && Key::parse(&long).is_none() && Key::parse("a b").is_none());
}

/// Memory is bounded as docs/formats.md says. This is the only test that takes much.
#[test]
fn hostile_tables_are_answered() {
    let (mut good, mut bad) = (0, 0);
    common::hostile(20000, &mut |text| {
        let before = TAKEN.load(Relaxed);
        MOST.store(before, Relaxed);
        match Table::read(text) {
            Ok(table) => {
                assert!(table.entries().iter().all(|e| std::ptr::eq(table.find_text(&e.key).unwrap(), e)));
                good += 1;
            }
            Err(Error::Bad(why)) => {
                assert!(!why.is_empty() && !why.chars().any(|c| c < ' '), "{:?}", why);
                bad += 1;
            }
            Err(Error::Refused(_)) => panic!("nothing was compared"),
        }
        assert!(MOST.load(Relaxed) - before < (16 << 20) + 8 * text.len());
    });
    assert!(good > 1000 && bad > 10000, "{} good and {} bad ones", good, bad);
}
