//! As much of a JSON text as tells what kind of message it is, however deep it is nested.

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// The outermost level of a JSON value.
#[derive(Debug, Default)]
pub struct Shape {
    role: Option<String>,
    /// Names of fields that hold something.
    filled: Vec<String>,
}

impl Shape {
    /// Returns the text of the field `role`.
    pub fn role(&self) -> Option<&str> {
        self.role.as_deref()
    }

    /// Returns whether the field `name` holds something: no `null`, no empty text, list or object.
    pub fn has(&self, name: &str) -> bool {
        self.filled.iter().any(|filled| filled == name)
    }
}

impl<'de> Deserialize<'de> for Shape {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Outer)
    }
}

struct Outer;

impl<'de> Visitor<'de> for Outer {
    type Value = Shape;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Shape, A::Error> {
        let mut shape = Shape::default();
        while let Some(name) = map.next_key::<String>()? {
            let Field { text, is_filled } = map.next_value()?;
            if name == "role" {
                shape.role = text;
            } else if is_filled {
                shape.filled.push(name);
            }
        }
        Ok(shape)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Shape, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Shape::default())
    }

    fn visit_str<E>(self, _: &str) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Shape, E> {
        Ok(Shape::default())
    }

    fn visit_unit<E>(self) -> Result<Shape, E> {
        Ok(Shape::default())
    }
}

/// One field of the outermost level.
struct Field {
    text: Option<String>,
    is_filled: bool,
}

impl Field {
    fn other(is_filled: bool) -> Self {
        Self { text: None, is_filled }
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Inner)
    }
}

struct Inner;

impl<'de> Visitor<'de> for Inner {
    type Value = Field;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_str<E>(self, text: &str) -> Result<Field, E> {
        Ok(Field { text: Some(text.to_owned()), is_filled: !text.is_empty() })
    }

    fn visit_unit<E>(self) -> Result<Field, E> {
        Ok(Field::other(false))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Field, E> {
        Ok(Field::other(true))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Field, E> {
        Ok(Field::other(true))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Field, E> {
        Ok(Field::other(true))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Field, E> {
        Ok(Field::other(true))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Field, A::Error> {
        let mut count = 0_u64;
        // Skipped without recursion, so nesting cannot exhaust the stack.
        while seq.next_element::<IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Field::other(count > 0))
    }

    // Numbers come as a map, too: their source text is kept.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Field, A::Error> {
        let mut count = 0_u64;
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {
            count += 1;
        }
        Ok(Field::other(count > 0))
    }
}
