//! Parts to key: an operation by its kind, shape, types and fields.

use crate::key::{Key, KEY_ROOM};
use core::fmt::{self, Write};

/// A dimension's value, beyond the shape. A number with a fraction is a text: the shortest one that reads back as the same
/// number.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    Text(&'a str),
    Numbers(&'a [i64]),
    Number(i64),
}

/// An operation by its parts; docs/formats.md tells what each kind has. Fields may come in any order; numbers that say what
/// is customary (no residual, one group, strides of 1) are left out here as they are in reports, all else that is customary
/// (an alpha of 1) must not be told.
///
/// ```
/// use scout_dispatch::{Op, Value};
/// let op = Op {
///     kind: "gemm",
///     shape: &[16, 4096, 4096],
///     layout: Some("nn"),
///     dtype: Some("fp16"),
///     fields: &[("batch", Value::Number(8))],
///     ..Op::default()
/// };
/// assert_eq!(op.key().unwrap().to_string(), "gemm;shape=16,4096,4096;layout=nn;type=fp16;batch=8");
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Op<'a> {
    /// gemm, attention, norm, …
    pub kind: &'a str,
    /// Which of its kind: rms, silu, transpose.
    pub what: Option<&'a str>,
    pub shape: &'a [i64],
    pub layout: Option<&'a str>,
    pub mask: Option<&'a str>,
    /// fp32, fp16, bf16, fp8e4m3fn, int8, …
    pub dtype: Option<&'a str>,
    pub weight_dtype: Option<&'a str>,
    pub out_dtype: Option<&'a str>,
    /// Of a gemm whose weight is constant: a or b.
    pub weight_side: Option<&'a str>,
    pub fields: &'a [(&'a str, Value<'a>)],
}

/// What is so anyway, so that no key has it.
const CUSTOMARY: &[(&str, i64)] = &[
    ("batch", 1),
    ("bias", 0),
    ("dilation", 1),
    ("directions", 1),
    ("global", 0),
    ("group", 1),
    ("indices_out", 0),
    ("initial_state", 0),
    ("inner", 1),
    ("input_bias", 0),
    ("interleaved", 0),
    ("lengths", 0),
    ("offset_mask", 0),
    ("output_padding", 0),
    ("packed_tokens", 0),
    ("pads", 0),
    ("peephole", 0),
    ("qk_norm", 0),
    ("residual", 0),
    ("residual_out", 0),
    ("scores_out", 0),
    ("sink", 0),
    ("stride", 1),
    ("training", 0),
    ("transposed", 0),
    ("zero_points", 0),
    ("weight_rearranged", 0),
];

/// Of lists, where all of their numbers say so.
fn is_customary(name: &str, numbers: &[i64]) -> bool {
    CUSTOMARY.iter().any(|known| known.0 == name && numbers.iter().all(|&n| n == known.1))
}

/// A text of bounded length.
struct Writer {
    text: [u8; KEY_ROOM],
    used: usize,
}

impl Write for Writer {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if text.len() >= KEY_ROOM - self.used {
            return Err(fmt::Error);
        }
        self.text[self.used..self.used + text.len()].copy_from_slice(text.as_bytes());
        self.used += text.len();
        Ok(())
    }
}

impl Writer {
    /// What would look like the key's own punctuation is written as %xx.
    fn escaped(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            match c {
                '\0'..=' ' | ';' | '=' | '%' | '\x7f' => write!(self, "%{:02x}", c as u32)?,
                _ => self.write_char(c)?,
            }
        }
        Ok(())
    }

    fn text(&mut self, name: &str, text: &str) -> fmt::Result {
        self.write_str(";")?;
        self.escaped(name)?;
        self.write_str("=")?;
        self.escaped(text)
    }

    fn maybe_text(&mut self, name: &str, text: Option<&str>) -> fmt::Result {
        text.map_or(Ok(()), |text| self.text(name, text))
    }

    fn numbers(&mut self, name: &str, numbers: &[i64]) -> fmt::Result {
        self.text(name, "")?;
        for (k, number) in numbers.iter().enumerate() {
            write!(self, "{}{}", if k > 0 { "," } else { "" }, number)?;
        }
        Ok(())
    }

    fn field(&mut self, name: &str, value: Value<'_>) -> fmt::Result {
        let one;
        let numbers = match value {
            Value::Text(text) => return self.text(name, text),
            Value::Numbers(numbers) => numbers,
            Value::Number(number) => {
                one = [number];
                &one
            }
        };
        if is_customary(name, numbers) {
            return Ok(());
        }
        self.numbers(name, numbers)
    }
}

impl<'a> Op<'a> {
    /// The first field by name behind the one that was written last; the weight's side is one of them.
    fn next_field(&self, last: &str) -> Option<(&'a str, Value<'a>)> {
        let side = self.weight_side.map(|side| ("weight_side", Value::Text(side)));
        side.into_iter().chain(self.fields.iter().copied()).filter(|field| field.0 > last).min_by_key(|field| field.0)
    }

    fn write(&self, w: &mut Writer) -> fmt::Result {
        let mut last = "";
        w.write_str(self.kind)?;
        w.maybe_text("what", self.what)?;
        w.numbers("shape", self.shape)?;
        w.maybe_text("layout", self.layout)?;
        w.maybe_text("mask", self.mask)?;
        w.maybe_text("type", self.dtype)?;
        w.maybe_text("weight", self.weight_dtype)?;
        w.maybe_text("out", self.out_dtype.filter(|_| self.out_dtype != self.dtype))?;
        while let Some((name, value)) = self.next_field(last) {
            w.field(name, value)?;
            last = name;
        }
        Ok(())
    }

    /// None: it is longer than any key may be, or its kind is no word.
    pub fn key(&self) -> Option<Key> {
        let mut w = Writer { text: [0; KEY_ROOM], used: 0 };
        self.write(&mut w).ok()?;
        Key::parse(core::str::from_utf8(&w.text[..w.used]).ok()?)
    }
}
