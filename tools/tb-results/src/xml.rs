//! A reader of XML that is pushed bytes and gives tags and text, in bounded memory. It checks nothing: what reports
//! hold is known, and a broken one is read as far as it goes.

use crate::scan;
use memchr::{memchr, memchr_iter, memchr2, memchr3};

/// A tag longer than this is a message that nobody reads to its end; the rest of it is dropped.
const TAG: usize = 64 << 10;
/// So much of a text is kept, from both of its ends.
const TEXT: usize = 8 << 10;

/// A piece of a document.
pub(crate) enum Event<'x> {
    /// A start tag.
    Open {
        /// The element.
        name: &'x [u8],
        /// The rest of the tag.
        attributes: &'x [u8],
        /// Whether it is its end tag too.
        empty: bool,
    },
    /// An end tag.
    Close(&'x [u8]),
    /// The text before a tag, not decoded.
    Text(&'x [u8]),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Text,
    /// Behind `<`; the quotation mark that is open.
    Tag(Option<u8>),
    /// Up to `-->`.
    Comment,
    /// Up to `]]>`.
    Data,
}

/// The reader.
#[derive(Default)]
pub(crate) struct Xml {
    state: State,
    tag: Vec<u8>,
    text: Vec<u8>,
    /// The last bytes of a comment or of data, in which its end may lie.
    tail: [u8; 2],
}

impl Xml {
    /// More of the document.
    pub(crate) fn push(&mut self, mut bytes: &[u8], mut see: impl FnMut(Event<'_>)) {
        while !bytes.is_empty() {
            let used = match self.state {
                State::Text => self.in_text(bytes, &mut see),
                State::Tag(quote) => self.in_tag(bytes, quote, &mut see),
                State::Comment => self.until(bytes, *b"-->", false),
                State::Data => self.until(bytes, *b"]]>", true),
            };
            bytes = &bytes[used..];
        }
    }

    /// Whether a tag was the last thing that came.
    pub(crate) fn is_between_tags(&self) -> bool {
        self.state == State::Text && self.text.is_empty()
    }

    /// Takes bytes of a text, and of the tag behind it if all of it is here; how many.
    fn in_text(&mut self, bytes: &[u8], see: &mut impl FnMut(Event<'_>)) -> usize {
        let end = memchr(b'<', bytes).unwrap_or(bytes.len());
        let (text, rest) = bytes.split_at(end);
        // Most tags are, and need not be copied to be read.
        if let Some(len) = rest.get(1..).and_then(tag_end) {
            if self.text.is_empty() && text.len() <= TEXT {
                tell(text, &rest[1..=len], see);
            } else {
                self.keep(text);
                tell(&self.text, &rest[1..=len], see);
                self.text.clear();
            }
            return end + len + 2;
        }
        self.keep(text);
        if rest.is_empty() {
            return end;
        }
        self.state = State::Tag(None);
        self.tag.clear();
        end + 1
    }

    fn keep(&mut self, text: &[u8]) {
        self.text.extend_from_slice(text);
        if self.text.len() > 4 * TEXT {
            let from = self.text.len() - TEXT;
            self.text.drain(TEXT..from);
        }
    }

    /// Takes bytes of a tag; how many.
    fn in_tag(&mut self, bytes: &[u8], quote: Option<u8>, see: &mut impl FnMut(Event<'_>)) -> usize {
        let end = match quote {
            Some(mark) => memchr(mark, bytes),
            None => memchr3(b'>', b'"', b'\'', bytes),
        };
        let len = end.unwrap_or(bytes.len());
        let room = TAG.saturating_sub(self.tag.len());
        self.tag.extend_from_slice(&bytes[..len.min(room)]);
        if quote.is_none() && self.tag.starts_with(b"!") && self.special() {
            // What is behind the mark was taken into the tag: it is read again from there.
            return self.reread(len);
        }
        let Some(at) = end else { return len };
        let byte = bytes[at];
        match (quote, byte) {
            (Some(_), _) => {
                self.tag.push(byte);
                self.state = State::Tag(None);
            }
            (None, b'>') => {
                self.state = State::Text;
                self.whole(see);
            }
            (None, mark) => {
                self.tag.push(mark);
                self.state = State::Tag(Some(mark));
            }
        }
        at + 1
    }

    /// Comments and data begin like tags.
    fn special(&mut self) -> bool {
        let state = match () {
            () if self.tag.starts_with(b"!--") => State::Comment,
            () if self.tag.starts_with(b"![CDATA[") => State::Data,
            () => return false,
        };
        self.state = state;
        self.tail = [0; 2];
        true
    }

    /// How many of the last `len` bytes belong to the mark itself.
    fn reread(&mut self, len: usize) -> usize {
        let mark = if self.state == State::Comment { 3 } else { 8 };
        let behind = self.tag.len().saturating_sub(mark);
        self.tag.clear();
        len.saturating_sub(behind)
    }

    fn whole(&mut self, see: &mut impl FnMut(Event<'_>)) {
        if !matches!(self.tag.first(), None | Some(b'?' | b'!')) {
            tell(&self.text, &self.tag, see);
            self.text.clear();
        }
    }

    /// Takes bytes up to the mark that ends a comment or data.
    fn until(&mut self, bytes: &[u8], mark: [u8; 3], text: bool) -> usize {
        let mut at = 0;
        while let Some(found) = memchr(b'>', &bytes[at..]) {
            let end = at + found;
            let before = |n: usize| if end >= n { bytes[end - n] } else { self.tail[2 - (n - end)] };
            if before(1) == mark[1] && before(2) == mark[0] {
                if text {
                    self.keep(&bytes[..end.saturating_sub(2)]);
                    // The mark may have begun in what was kept before.
                    self.text.truncate(self.text.len() - 2usize.saturating_sub(end).min(self.text.len()));
                }
                self.state = State::Text;
                return end + 1;
            }
            at = end + 1;
        }
        if text {
            self.keep(bytes);
        }
        for byte in &bytes[bytes.len().saturating_sub(2)..] {
            self.tail = [self.tail[1], *byte];
        }
        bytes.len()
    }
}

/// The length of the tag that the text begins with, if it ends here and is an element's.
fn tag_end(text: &[u8]) -> Option<usize> {
    let text = &text[..text.len().min(TAG)];
    if matches!(text.first(), Some(b'?' | b'!' | b'>')) {
        return None;
    }
    // An even number of quotation marks, all of them of one kind, are closed: so it is but for values that hold
    // an apostrophe or a bracket.
    let end = memchr2(b'>', b'\'', text)?;
    if text[end] == b'>' && memchr_iter(b'"', &text[..end]).count().is_multiple_of(2) {
        return Some(end);
    }
    let mut at = 0;
    loop {
        at += memchr3(b'>', b'"', b'\'', text.get(at..)?)?;
        match text[at] {
            b'>' => return Some(at),
            mark => at += memchr(mark, &text[at + 1..])? + 2,
        }
    }
}

/// Hands on the text before a tag, and the tag.
fn tell(text: &[u8], tag: &[u8], see: &mut impl FnMut(Event<'_>)) {
    if !text.is_empty() {
        see(Event::Text(text));
    }
    if let Some(name) = tag.strip_prefix(b"/") {
        return see(Event::Close(local(name.trim_ascii())));
    }
    let empty = tag.ends_with(b"/");
    let body = tag.strip_suffix(b"/").unwrap_or(tag);
    let end = body.iter().position(u8::is_ascii_whitespace).unwrap_or(body.len());
    see(Event::Open { name: local(&body[..end]), attributes: &body[end..], empty });
}

/// A name without its namespace.
fn local(name: &[u8]) -> &[u8] {
    name.iter().rposition(|b| *b == b':').map_or(name, |at| &name[at + 1..])
}

/// The attributes of a tag, names and values not decoded.
pub(crate) fn attributes(text: &[u8]) -> impl Iterator<Item = (&[u8], &[u8])> {
    let mut rest = text;
    std::iter::from_fn(move || {
        // Names are too short for a search to be set up.
        let equals = rest.iter().position(|b| *b == b'=')?;
        let name = rest[..equals].trim_ascii();
        let value = rest[equals + 1..].trim_ascii_start();
        let mark = *value.first().filter(|b| matches!(b, b'"' | b'\''))?;
        let end = memchr(mark, &value[1..]).unwrap_or(value.len() - 1);
        rest = value.get(end + 2..).unwrap_or_default();
        Some((name, &value[1..=end]))
    })
}

/// The decoded value of an attribute.
pub(crate) fn attribute(text: &[u8], key: &[u8]) -> Option<String> {
    attributes(text).find(|(name, _)| *name == key).map(|(_, value)| scan::owned(plain(value)))
}

/// Text with its entities decoded.
pub(crate) fn plain(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    plain_into(text, &mut out);
    out
}

/// Appends text with its entities decoded.
pub(crate) fn plain_into(text: &[u8], out: &mut Vec<u8>) {
    let mut rest = text;
    while let Some(at) = memchr(b'&', rest) {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at..];
        let end = memchr(b';', &rest[..rest.len().min(12)]);
        match end.and_then(|end| Some((end, entity(&rest[1..end])?))) {
            Some((end, c)) => {
                out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
                rest = &rest[end + 1..];
            }
            None => {
                out.push(b'&');
                rest = &rest[1..];
            }
        }
    }
    out.extend_from_slice(rest);
}

fn entity(name: &[u8]) -> Option<char> {
    match name {
        b"lt" => Some('<'),
        b"gt" => Some('>'),
        b"amp" => Some('&'),
        b"quot" => Some('"'),
        b"apos" => Some('\''),
        _ => {
            let digits = std::str::from_utf8(name.strip_prefix(b"#")?).ok()?;
            let code = match digits.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            char::from_u32(code)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The events of a document that comes in pieces of that size.
    fn events(document: &str, size: usize) -> Vec<String> {
        let mut xml = Xml::default();
        let mut out = Vec::new();
        for piece in document.as_bytes().chunks(size) {
            xml.push(piece, |event| {
                out.push(match event {
                    Event::Open { name, attributes, empty } => {
                        let name = String::from_utf8_lossy(name).into_owned();
                        let value = attribute(attributes, b"a").unwrap_or_default();
                        format!("<{name} {value}{}", if empty { "/" } else { "" })
                    }
                    Event::Close(name) => format!("</{}", String::from_utf8_lossy(name)),
                    Event::Text(text) => String::from_utf8_lossy(&plain(text)).into_owned(),
                });
            });
        }
        out
    }

    #[test]
    fn however_it_comes_the_events_are_the_same() {
        let document = "<?xml version='1.0'?><!DOCTYPE x><r a='1 &gt; 0'><!-- <no a='2'> -- ><x:y a=\"&#x41;'>\"/>\
                        -->t&amp;<x:y a=\"&#x41;'>\"/><![CDATA[<z>]] ]>]]></r>";
        let whole = events(document, document.len());
        assert_eq!(whole, ["<r 1 > 0", "t&", "<y A'>/", "<z>]] ]>", "</r"]);
        for size in 1..20 {
            assert_eq!(events(document, size), whole, "{size}");
        }
    }

    #[test]
    fn memory_is_bounded() {
        let mut xml = Xml::default();
        xml.push(b"<a b='", |_| {});
        for _ in 0..1000 {
            xml.push(&[b'x'; 10_000], |_| {});
        }
        assert!(xml.tag.len() <= TAG);
        xml.push(b"'>", |_| {});
        for _ in 0..1000 {
            xml.push(&[b'y'; 10_000], |_| {});
        }
        assert!(xml.text.len() <= 4 * TEXT);
    }
}
