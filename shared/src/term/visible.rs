//! Control characters of logs and names, made visible for a terminal.

use std::borrow::Cow;

/// The text with every control character but TAB in caret notation (`^[`, `^?`), C1 controls as `<U+0085>`:
/// what a test printed must not drive the terminal of the person who looks at it.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|c| c.is_control() && c != '\t') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '\t' => out.push(c),
            '\x7f' => out.push_str("^?"),
            c if (c as u32) < 0x20 => {
                out.push('^');
                out.push(char::from(c as u8 ^ 0x40));
            }
            c if c.is_control() => out.push_str(&format!("<U+{:04X}>", c as u32)),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::visible;

    #[test]
    fn control_characters_become_carets_and_text_stays() {
        assert_eq!(visible("a\tb"), "a\tb");
        assert_eq!(visible("\x1b[31mred\x1b[0m\r"), "^[[31mred^[[0m^M");
        assert_eq!(visible("\x7f\u{85}é"), "^?<U+0085>é");
    }
}
