//! Patterns of image references: `*` stands for any characters.

/// Whether the whole of `text` matches `pattern`. Takes time proportional to the product of the lengths at worst.
#[must_use]
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text) = (pattern.as_bytes(), text.as_bytes());
    let (mut p, mut t) = (0, 0);
    // Where the last star was, and how much of the text it has swallowed so far.
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(byte) if *byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, swallowed)) => {
                    *swallowed += 1;
                    (p, t) = (*at + 1, *swallowed);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|b| *b == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn a_star_stands_for_any_characters_and_everything_else_for_itself() {
        let table = [
            ("registry.example.com/legacy/*", "registry.example.com/legacy/app:1", true),
            ("registry.example.com/legacy/*", "registry.example.com/legacy/a/b:1", true),
            ("registry.example.com/legacy/*", "registry.example.com/other", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*-win", "app-win-win", true),
            ("*-win", "app-win:1", false),
            ("a*b*c", "aXbXbc", true),
            ("a*b*c", "aXc", false),
            ("app", "app:1", false),
            ("a**", "a", true),
            ("[a]?", "[a]?", true),
            ("[a]?", "aa", false),
        ];
        for (pattern, text, expected) in table {
            assert_eq!(matches(pattern, text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn many_stars_do_not_take_for_ever() {
        let text = "a".repeat(4096);
        assert!(!matches(&format!("{}b", "a*".repeat(128)), &text));
    }
}
