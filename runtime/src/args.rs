//! Values of arguments that more than one process takes.

/// A DNS subdomain, as names of objects are.
pub fn object_name(text: &str) -> Result<String, String> {
    let label = |l: &str| {
        !l.is_empty()
            && !l.starts_with('-')
            && !l.ends_with('-')
            && l.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
    };
    if text.len() <= 253 && text.split('.').all(label) {
        Ok(text.to_owned())
    } else {
        Err("must be the name of an object: lower-case letters, digits, '-' and '.'".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_names_of_objects() {
        assert!(object_name("bifold-operator-7d9c-x2").is_ok());
        for wrong in ["", "Bifold", "a..b", "-a", "a/b"] {
            assert!(object_name(wrong).is_err(), "{wrong}");
        }
    }
}
