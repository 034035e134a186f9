//! The pieces from which the typed views of objects are made: they borrow from the document, take `null` for absent
//! and skip what they do not know.
//!
//! Every piece deserializes from the bytes of a review as well as from a [`serde_json::Value`].

use std::{borrow::Cow, collections::BTreeMap, fmt, marker::PhantomData, ops::Deref};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IgnoredAny, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::value::RawValue;

/// Whether a field is there with any value but `null`: what the API server calls "set".
pub type Set = Option<IgnoredAny>;

/// The fields of an object that a view does not name: whether there are any.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct Others(BTreeMap<String, Set>);

impl Others {
    /// Whether none of them is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.values().all(Option::is_none)
    }
}

/// A string, borrowed from the document unless it has escapes.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a>(Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self(Cow::Borrowed(text))
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self(Cow::Owned(text))
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text)))
    }
}

/// A list; an element that is `null` counts as an empty one, so that the others keep their places. `R` is how an
/// element is read.
#[derive(Clone, Debug, PartialEq)]
pub struct List<T, R = T>(Vec<T>, PhantomData<R>);

/// A list of objects.
pub type Objects<T> = List<T, Object<T>>;

impl<T, R> Default for List<T, R> {
    fn default() -> Self {
        Self(Vec::new(), PhantomData)
    }
}

impl<T, R> Deref for List<T, R> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T, R> List<T, R> {
    /// Keeps the elements of which `keep` holds.
    pub fn retain(&mut self, keep: impl FnMut(&mut T) -> bool) {
        self.0.retain_mut(keep);
    }
}

impl<'de, T: Default, R: Deserialize<'de> + Read<T>> Deserialize<'de> for List<T, R> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

struct ListVisitor<T, R>(PhantomData<(T, R)>);

impl<'de, T: Default, R: Deserialize<'de> + Read<T>> Visitor<'de> for ListVisitor<T, R> {
    type Value = List<T, R>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<List<T, R>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element::<Option<R>>()? {
            items.push(item.map(Read::read).unwrap_or_default());
        }
        Ok(List(items, PhantomData))
    }
}

/// What is read in place of a `T`.
pub trait Read<T> {
    /// The value.
    fn read(self) -> T;
}

impl<T> Read<T> for T {
    fn read(self) -> T {
        self
    }
}

/// A struct that is read from an object only. (Alone, serde also takes a list of the values of its fields; a patch
/// for the object that it then seems to be would not apply.)
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Object<T>(pub T);

impl<T> Read<T> for Object<T> {
    fn read(self) -> T {
        self.0
    }
}

impl<T> Deref for Object<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

struct ObjectVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
    type Value = Object<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// A map of strings, in the order of the document.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Map<'a>(Vec<(Text<'a>, Text<'a>)>);

impl Map<'_> {
    /// The value of `key`; of a key that is there twice, the last, as Go decodes it.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().rev().find(|(k, _)| &**k == key).map(|(_, v)| &**v)
    }

    /// Takes `key` out.
    pub fn remove(&mut self, key: &str) {
        self.0.retain(|(k, _)| &**k != key);
    }

    /// All pairs.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(k, v)| (&**k, &**v))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Map<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(MapVisitor)
    }
}

struct MapVisitor;

impl<'de> Visitor<'de> for MapVisitor {
    type Value = Map<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map of strings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Map<'de>, A::Error> {
        let mut pairs = Vec::new();
        while let Some((key, value)) = map.next_entry::<Text<'de>, Option<Text<'de>>>()? {
            pairs.push((key, value.unwrap_or_default()));
        }
        Ok(Map(pairs))
    }
}

/// One field of an object, unread; `None` where the field is absent or `null`.
pub fn field<'a>(object: &'a RawValue, name: &str) -> serde_json::Result<Option<&'a RawValue>> {
    serde_json::Deserializer::from_str(object.get()).deserialize_map(FieldVisitor(name))
}

struct FieldVisitor<'n>(&'n str);

impl<'de> Visitor<'de> for FieldVisitor<'_> {
    type Value = Option<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = None;
        while let Some(key) = map.next_key::<Text<'de>>()? {
            if *key == *self.0 {
                found = map.next_value::<Option<&'de RawValue>>()?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_borrows_unless_it_has_escapes() {
        let plain: Text<'_> = serde_json::from_str(r#""abc""#).unwrap();
        let escaped: Text<'_> = serde_json::from_str(r#""a\nc""#).unwrap();
        assert!(matches!(plain.0, Cow::Borrowed("abc")));
        assert_eq!(&*escaped, "a\nc");
    }

    #[test]
    fn null_elements_and_values_are_empty_ones() {
        let list: List<Text<'_>> = serde_json::from_str(r#"["a",null,"c"]"#).unwrap();
        assert_eq!(list.iter().map(|t| &**t).collect::<Vec<_>>(), ["a", "", "c"]);
        let map: Map<'_> = serde_json::from_str(r#"{"a":null,"b":"1","b":"2"}"#).unwrap();
        assert_eq!((map.get("a"), map.get("b"), map.get("c")), (Some(""), Some("2"), None));
    }
}
