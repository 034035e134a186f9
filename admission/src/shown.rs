//! Words of a pod's author on their way to a terminal or a log: escaped and cut.

use std::fmt;

/// The longest name that is shown whole; an object name of Kubernetes has at most 253 characters.
const LONGEST: usize = 128;

/// A text from a pod, with everything that could move a cursor, forge a line or reorder letters written as an escape.
pub struct Shown<'t>(pub &'t str);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        for (position, c) in self.0.chars().enumerate() {
            if position == LONGEST {
                return f.write_str("…");
            }
            if c == '"' || c == '\'' || c == '\\' || !is_harmful(c) {
                f.write_char(c)?;
            } else {
                write!(f, "{}", c.escape_unicode())?;
            }
        }
        Ok(())
    }
}

/// Whatever `escape_debug` would escape (controls, separators, unassigned), and the marks that turn writing around.
fn is_harmful(c: char) -> bool {
    !c.is_ascii_graphic() && c != ' ' && (c.escape_debug().len() != 1 || is_direction_mark(c))
}

const fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// `text`, cut to at most `longest` bytes; a text that was cut ends with `…`.
#[must_use]
pub fn cut(mut text: String, longest: usize) -> String {
    const MARK: &str = "…";
    if text.len() > longest {
        text.truncate(text.floor_char_boundary(longest.saturating_sub(MARK.len())));
        text.push_str(MARK);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_poison_a_terminal_is_escaped() {
        let table = [
            ("web-1", "web-1"),
            ("a\nb\r\x1b[31mc", "a\\u{a}b\\u{d}\\u{1b}[31mc"),
            ("\u{202e}gnp.exe", "\\u{202e}gnp.exe"),
            ("\u{2028}", "\\u{2028}"),
            ("käse \"q\" C:\\d", "käse \"q\" C:\\d"),
        ];
        for (text, shown) in table {
            assert_eq!(Shown(text).to_string(), shown);
        }
        assert_eq!(Shown(&"x".repeat(500)).to_string(), format!("{}…", "x".repeat(128)));
    }

    #[test]
    fn a_text_is_cut_between_characters() {
        assert_eq!(cut("äöü".into(), 6), "äöü");
        assert_eq!(cut("äöüß".into(), 6), "ä…");
        assert_eq!(cut("abcdef".into(), 5), "ab…");
    }
}
