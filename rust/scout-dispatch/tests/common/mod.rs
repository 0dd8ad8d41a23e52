//! Tables that are no good: cuts, changed bytes and spliced pieces of good ones.

use std::fs;

/// Small, fast and always the same.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }

    pub fn one_of<'a, T: ?Sized>(&mut self, items: &[&'a T]) -> &'a T {
        items[self.below(items.len())]
    }
}

/// The tables that the tests of the C library begin with, too.
pub fn seeds() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/dispatch/seeds");
    let mut paths: Vec<_> = fs::read_dir(folder).expect(folder).map(|file| file.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() >= 2);
    paths.iter().map(|path| fs::read(path).unwrap()).collect()
}

const PIECES: [&str; 30] = [
    "null",
    "true",
    "0",
    "-1",
    "1",
    "16",
    "1e999",
    "1e-999",
    "1e300",
    "9223372036854775807",
    "9223372036854775808",
    "01",
    "1.5",
    "\"\"",
    "\"\\u0000\"",
    "\"\\ud800\"",
    "\"\\ud83d\\ude00\"",
    "\"\\/\"",
    "\"\u{e9}\"",
    "{}",
    "[]",
    "{",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "[[[[[[[[[[[[",
    "\"key\":\"\"",
    "gemm;shape=64,8,8",
];

fn splice(random: &mut Random, seed: &[u8]) -> Vec<u8> {
    let mut text = seed.to_vec();
    for _ in 0..1 + random.below(3) {
        let (at, length) = (random.below(text.len()), random.below(40));
        let end = (at + length).min(text.len());
        match random.below(4) {
            0 => drop(text.drain(at..end)),
            1 => {
                let piece = text[at..end].to_vec();
                let to = random.below(text.len());
                drop(text.splice(to..to, piece));
            }
            2 => {
                let piece = random.one_of(&PIECES);
                drop(text.splice(at..at + random.below(2).min(text.len() - at), piece.bytes()));
            }
            // a whole value for another one
            _ => {
                let start = text[at..].iter().position(|&c| c == b':' || c == b'[').map_or(at, |n| at + n + 1);
                let stop = text[start..].iter().position(|c| b",]}".contains(c)).map_or(text.len(), |n| start + n);
                let piece = random.one_of(&PIECES);
                drop(text.splice(start..stop, piece.bytes()));
            }
        }
        if text.is_empty() {
            text.push(b' ');
        }
    }
    text
}

/// Calls `try_one` with every cut of every seed, with every byte changed, and with `splices` of each.
pub fn hostile(splices: usize, try_one: &mut dyn FnMut(&[u8])) {
    let mut random = Random(88172645463325252);
    for seed in seeds() {
        for size in 0..=seed.len() {
            try_one(&seed[..size]);
        }
        for k in 0..seed.len() {
            let mut text = seed.clone();
            for &other in b"\0\"\\{],9-e\xe2" {
                text[k] = other;
                try_one(&text);
            }
        }
        for _ in 0..splices {
            try_one(&splice(&mut random, &seed));
        }
    }
    let deep = [b"{\"a\":".to_vec(), vec![b'['; 4 << 20]].concat();
    try_one(&deep);
    try_one(&[b"{\"a\":".to_vec(), vec![b'7'; 4 << 20]].concat());
    try_one(&[b"{\"a\":\"".to_vec(), vec![b'x'; 4 << 20]].concat());
}
