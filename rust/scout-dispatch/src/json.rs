//! A strict reader of JSON (RFC 8259, UTF-8) for untrusted files: no tree, members go where their name says, unknown ones
//! are stepped over. The first mistake ends it with one line that says where.

use crate::Error;
use alloc::{format, string::String, vec::Vec};

const DEPTH: u32 = 32;
const HEX_DIGITS: usize = 8192;

pub(crate) struct Json<'a> {
    text: &'a [u8],
    at: usize,
    depth: u32,
}

pub(crate) type Read<T> = Result<T, Error>;

impl<'a> Json<'a> {
    pub fn new(text: &'a [u8]) -> Self {
        Json { text, at: 0, depth: 0 }
    }

    pub fn fail<T>(&self, why: &str) -> Read<T> {
        let line = 1 + self.text[..self.at].iter().filter(|&&c| c == b'\n').count();
        Err(Error::Bad(format!("line {}: {}", line, why)))
    }

    fn here(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.here(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Option<u8> {
        self.blanks();
        self.here()
    }

    fn take(&mut self, c: u8) -> bool {
        let there = self.peek() == Some(c);
        self.at += usize::from(there);
        there
    }

    fn expect(&mut self, c: u8, what: &str) -> Read<()> {
        if self.take(c) {
            return Ok(());
        }
        self.fail(&format!("{} is expected here", what))
    }

    // ---- texts ----

    fn four_digits(&mut self) -> Read<u32> {
        let mut code = 0;
        for _ in 0..4 {
            match self.here().and_then(|c| char::from(c).to_digit(16)) {
                Some(digit) => code = 16 * code + digit,
                None => return self.fail("\\u wants four hex digits"),
            }
            self.at += 1;
        }
        Ok(code)
    }

    /// What stands behind a backslash.
    fn escape(&mut self) -> Read<char> {
        let c = self.here();
        self.at += usize::from(c.is_some());
        match c {
            Some(c @ (b'"' | b'\\' | b'/')) => return Ok(char::from(c)),
            Some(b'b') => return Ok('\x08'),
            Some(b'f') => return Ok('\x0c'),
            Some(b'n') => return Ok('\n'),
            Some(b'r') => return Ok('\r'),
            Some(b't') => return Ok('\t'),
            Some(b'u') => {}
            _ => return self.fail("unknown escape"),
        }
        let mut code = self.four_digits()?;
        if (0xd800..0xdc00).contains(&code) {
            if !self.text[self.at..].starts_with(b"\\u") {
                return self.fail("half a surrogate");
            }
            self.at += 2;
            let low = self.four_digits()?;
            if !(0xdc00..0xe000).contains(&low) {
                return self.fail("half a surrogate");
            }
            code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        }
        match char::from_u32(code) {
            Some(c) if c != '\0' => Ok(c),
            _ => self.fail(&format!("a string holds \\u{:04x}", code)),
        }
    }

    pub fn text(&mut self) -> Read<String> {
        let mut out = String::new();
        self.expect(b'"', "a string")?;
        while let Some(c) = self.here() {
            if c == b'"' {
                break;
            }
            if c == b'\\' {
                self.at += 1;
                out.push(self.escape()?);
                continue;
            }
            let rest = &self.text[self.at..];
            let one = (1..=4).filter_map(|n| core::str::from_utf8(rest.get(..n)?).ok()).next();
            match one {
                Some(character) if c >= b' ' => {
                    out.push_str(character);
                    self.at += character.len();
                }
                _ => return self.fail("a string holds bytes that are not UTF-8 or control a terminal"),
            }
        }
        self.expect(b'"', "the end of a string")?;
        Ok(out)
    }

    /// A text, or null.
    pub fn maybe_text(&mut self) -> Read<Option<String>> {
        if self.peek() == Some(b'n') {
            return self.word("null").map(|_| None);
        }
        self.text().map(Some)
    }

    pub fn hex(&mut self) -> Read<Vec<u8>> {
        let text = self.text()?;
        let digits: Option<Vec<u32>> = text.chars().map(|c| c.to_digit(16)).collect();
        match digits {
            Some(digits) if digits.len() % 2 == 0 && digits.len() <= HEX_DIGITS => {
                Ok(digits.chunks(2).map(|pair| (16 * pair[0] + pair[1]) as u8).collect())
            }
            _ => self.fail("this is not a list of bytes in hex"),
        }
    }

    // ---- numbers ----

    fn digits(&mut self, whole: bool) -> Read<()> {
        let start = self.at;
        while matches!(self.here(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            return self.fail("a number is expected here");
        }
        if whole && self.text[start] == b'0' && self.at - start > 1 {
            return self.fail("a number begins with a zero");
        }
        Ok(())
    }

    /// Steps over a number: its text, and whether it has a fraction or an exponent.
    fn number(&mut self) -> Read<(&'a str, bool)> {
        self.blanks();
        let start = self.at;
        let mut whole = true;
        self.at += usize::from(self.here() == Some(b'-'));
        self.digits(true)?;
        if self.here() == Some(b'.') {
            self.at += 1;
            whole = false;
            self.digits(false)?;
        }
        if matches!(self.here(), Some(b'e' | b'E')) {
            self.at += 1;
            whole = false;
            self.at += usize::from(matches!(self.here(), Some(b'+' | b'-')));
            self.digits(false)?;
        }
        Ok((core::str::from_utf8(&self.text[start..self.at]).unwrap_or(""), whole))
    }

    pub fn integer(&mut self) -> Read<i64> {
        let (text, whole) = self.number()?;
        match text.parse() {
            Ok(number) if whole => Ok(number),
            _ => self.fail("a whole number of at most 63 bits is expected here"),
        }
    }

    fn real(&mut self) -> Read<f64> {
        let (text, _) = self.number()?;
        match text.parse::<f64>() {
            Ok(number) if (-1e300..=1e300).contains(&number) => Ok(number),
            _ => self.fail("a number is too large"),
        }
    }

    /// 0 and more.
    pub fn count(&mut self) -> Read<i64> {
        let number = self.integer()?;
        if number >= 0 {
            return Ok(number);
        }
        self.fail("a number must not be negative")
    }

    /// 0 and more.
    pub fn part(&mut self) -> Read<f64> {
        let number = self.real()?;
        if number >= 0.0 {
            return Ok(number);
        }
        self.fail("a number must not be negative")
    }

    /// More than 0.
    pub fn time(&mut self) -> Read<f64> {
        let number = self.real()?;
        if number > 0.0 {
            return Ok(number);
        }
        self.fail("a number must be more than 0")
    }

    // ---- values that are stepped over ----

    fn word(&mut self, name: &str) -> Read<()> {
        if !self.text[self.at..].starts_with(name.as_bytes()) {
            return self.fail("a value is expected here");
        }
        self.at += name.len();
        Ok(())
    }

    fn step_over(&mut self) -> Read<()> {
        match self.peek() {
            Some(b'{') => self.object(&[], &mut |_, _| Ok(())),
            Some(b'[') => self.array(&mut Self::step_over),
            Some(b'"') => self.text().map(|_| ()),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            _ => self.real().map(|_| ()),
        }
    }

    /// An object as it stands, without blanks.
    pub fn raw(&mut self) -> Read<String> {
        if self.peek() != Some(b'{') {
            return self.fail("an object is expected here");
        }
        let start = self.at;
        self.step_over()?;
        let (mut quoted, mut escaped) = (false, false);
        let mut out = self.text[start..self.at].to_vec();
        out.retain(|&c| {
            let keep = quoted || c > b' ';
            if c == b'"' && !escaped {
                quoted = !quoted;
            }
            escaped = quoted && c == b'\\' && !escaped;
            keep
        });
        String::from_utf8(out).or_else(|_| self.fail("an object is expected here"))
    }

    // ---- objects and arrays ----

    fn deeper(&mut self) -> Read<()> {
        self.depth += 1;
        if self.depth <= DEPTH {
            return Ok(());
        }
        self.fail(&format!("it is nested more than {} deep", DEPTH))
    }

    /// `value` reads the value of each member that is listed; `true` beside a name: it must be there. Names of tables hold
    /// no escapes, so one that does is unknown.
    pub fn object(&mut self, members: &[(&str, bool)], value: &mut dyn FnMut(&mut Self, &str) -> Read<()>) -> Read<()> {
        let mut seen = 0u32;
        self.expect(b'{', "an object")?;
        self.deeper()?;
        if self.peek() != Some(b'}') {
            loop {
                self.blanks();
                let start = self.at;
                let name = self.text()?;
                let plain = self.at - start == name.len() + 2;
                self.expect(b':', "a colon")?;
                match members.iter().position(|m| plain && m.0 == name) {
                    None => self.step_over()?,
                    Some(k) if seen >> k & 1 == 1 => return self.fail(&format!("\"{}\" is given twice", name)),
                    Some(k) => {
                        seen |= 1 << k;
                        value(self, members[k].0)?;
                    }
                }
                if !self.take(b',') {
                    break;
                }
            }
        }
        self.expect(b'}', "a comma or }")?;
        for (k, (name, required)) in members.iter().enumerate() {
            if *required && seen >> k & 1 == 0 {
                return self.fail(&format!("\"{}\" is missing", name));
            }
        }
        self.depth -= 1;
        Ok(())
    }

    pub fn array(&mut self, item: &mut dyn FnMut(&mut Self) -> Read<()>) -> Read<()> {
        self.expect(b'[', "an array")?;
        self.deeper()?;
        if self.peek() != Some(b']') {
            loop {
                item(self)?;
                if !self.take(b',') {
                    break;
                }
            }
        }
        self.depth -= 1;
        self.expect(b']', "a comma or ]")
    }

    pub fn end(&mut self) -> Read<()> {
        if self.peek().is_none() {
            return Ok(());
        }
        self.fail("there is more after the end")
    }
}
