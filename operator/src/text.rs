//! Sentences about many things, kept short: a message in a status has a reader and a size limit.

use std::fmt::Display;

/// How many names a sentence carries.
const NAMED: usize = 5;

/// `a, b, c`, or `a, b, c, d, e and 7 more`.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    let items: Vec<String> = items.into_iter().map(|i| i.to_string()).collect();
    let (named, rest) = items.split_at(items.len().min(NAMED));
    match rest.len() {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

/// `1 node`, `2 nodes`.
pub fn count(n: usize, singular: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{n} {singular}{s}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_names_five_and_counts_the_rest() {
        assert_eq!(list(["a", "b"]), "a, b");
        assert_eq!(list(1..=12), "1, 2, 3, 4, 5 and 7 more");
        assert_eq!((count(1, "node"), count(2, "node")), ("1 node".into(), "2 nodes".into()));
    }
}
