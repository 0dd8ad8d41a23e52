//! Keys of operations: the canonical text taken apart once into its form, where every number is a blank, and its numbers.

use core::fmt;

/// A key's text is shorter than this.
pub const KEY_ROOM: usize = 1024;
/// Numbers of a key; further ones stay text.
pub const NUMBERS: usize = 32;

/// An operation, as a table is asked for it. To ask again for another size only a number is set:
///
/// ```
/// let mut key = scout_dispatch::Key::parse("gemm;shape=1,4096,4096;layout=nn;type=fp16").unwrap();
/// let rows = key.place("shape", 0).unwrap();
/// key.numbers_mut()[rows] = 2048; // whenever it is wanted: no text is written or read
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Key {
    form_hash: u64,
    length: usize,
    count: usize,
    numbers: [i64; NUMBERS],
    form: [u8; KEY_ROOM],
}

pub(crate) fn mix(hash: u64, x: u64) -> u64 {
    let hash = (hash ^ x).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ (hash >> 32)
}

fn text_hash(text: &[u8]) -> u64 {
    text.chunks(8).fold(text.len() as u64, |hash, chunk| {
        mix(hash, chunk.iter().rev().fold(0, |word, &c| word << 8 | u64::from(c)))
    })
}

/// The number that a part of a key is, where it is written as numbers are in keys, and its length.
fn number(text: &[u8]) -> Option<(i64, usize)> {
    let length = text.iter().position(|c| matches!(c, b',' | b';')).unwrap_or(text.len());
    let part = &text[..length];
    let digits = part.strip_prefix(b"-").unwrap_or(part);
    let zero = digits.first() == Some(&b'0') && length > 1; // one text for one number
    if zero || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    Some((core::str::from_utf8(part).ok()?.parse().ok()?, length))
}

impl Key {
    /// None: no canonical text, or one that is too long.
    pub fn parse(text: &str) -> Option<Key> {
        let text = text.as_bytes();
        if text.is_empty() || text.len() >= KEY_ROOM {
            return None;
        }
        let mut key = Key { form_hash: 0, length: 0, count: 0, numbers: [0; NUMBERS], form: [0; KEY_ROOM] };
        let mut at = 0;
        while let Some(&c) = text.get(at) {
            if c <= b' ' || c == 0x7f {
                return None;
            }
            key.push(c);
            at += 1;
            if !matches!(c, b'=' | b',') || key.count == NUMBERS {
                continue;
            }
            if let Some((found, length)) = number(&text[at..]) {
                key.push(b' '); // which no canonical text has
                key.numbers[key.count] = found;
                key.count += 1;
                at += length;
            }
        }
        key.form_hash = text_hash(key.form());
        Some(key)
    }

    /// A form is no longer than its text: a blank stands for one digit or more.
    fn push(&mut self, c: u8) {
        self.form[self.length] = c;
        self.length += 1;
    }

    /// Where the `which`-th number (from 0) of a member stands among the numbers: "shape", "kv_len". None: the key has none,
    /// or a text.
    pub fn place(&self, member: &str, which: usize) -> Option<usize> {
        let mut place = 0;
        let mut parts = self.form().split(|&c| c == b';');
        place += blanks(parts.next()?);
        for part in parts {
            let value = part.strip_prefix(member.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            if let Some(value) = value {
                let mut items = value.split(|&c| c == b',');
                let before: usize = items.by_ref().take(which).map(blanks).sum();
                return items.next().filter(|item| item.first() == Some(&b' ')).map(|_| place + before);
            }
            place += blanks(part);
        }
        None
    }

    /// In the order of the text.
    pub fn numbers(&self) -> &[i64] {
        &self.numbers[..self.count]
    }

    pub fn numbers_mut(&mut self) -> &mut [i64] {
        &mut self.numbers[..self.count]
    }

    pub(crate) fn form(&self) -> &[u8] {
        &self.form[..self.length]
    }

    pub(crate) fn hash(&self) -> u64 {
        self.numbers().iter().fold(self.form_hash, |hash, &n| mix(hash, n as u64))
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter().filter(|&&c| c == b' ').count()
}

/// The canonical text.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut numbers = self.numbers().iter();
        for piece in self.form().split_inclusive(|&c| c == b' ') {
            let text = piece.strip_suffix(b" ").unwrap_or(piece);
            f.write_str(core::str::from_utf8(text).map_err(|_| fmt::Error)?)?;
            if text.len() < piece.len() {
                write!(f, "{}", numbers.next().ok_or(fmt::Error)?)?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self)
    }
}
