//! What JSON can be read into, and the words to say which field of an object is which.

use std::borrow::Cow;
use std::ops::Range;

use super::reader::{DecodeResult, JsonError, JsonReader};

/// Something that waits for a value. It is there before it is read, so that nothing is moved.
pub trait FromJson<'a>: Default {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult;
}

/// A whole text.
pub fn decode_json<'a, T: FromJson<'a>>(text: &'a str) -> Result<T, JsonError> {
    let (mut value, mut reader) = (T::default(), JsonReader::new(text));
    let outcome = value.decode(&mut reader);
    match outcome.and_then(|()| reader.end()) {
        Ok(()) => Ok(value),
        Err(_) => Err(reader.problem()),
    }
}

/// An object's fields, by the key that each is found under. Others are skipped; none may come
/// twice, and those that say `required` must come.
macro_rules! from_json {
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident<$life:lifetime> { $($fields:tt)* }
    ) => {
        from_json! { @struct [$(#[$meta])* $visible struct $name<$life>] $($fields)* }
        from_json! { @impl [impl<$life> $crate::json::FromJson<$life> for $name<$life>] $life $($fields)* }
    };
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident { $($fields:tt)* }
    ) => {
        from_json! { @struct [$(#[$meta])* $visible struct $name] $($fields)* }
        from_json! { @impl [impl<'r> $crate::json::FromJson<'r> for $name] 'r $($fields)* }
    };
    (
        @struct [$($head:tt)*]
        $($(#[$meta:meta])* $key:literal $(| $alias:literal)* $($required:ident)? => $visible:vis $field:ident: $type:ty,)*
    ) => {
        #[derive(Default)]
        $($head)* { $($(#[$meta])* $visible $field: $type,)* }
    };
    (
        @impl [$($head:tt)*] $life:lifetime
        $($(#[$meta:meta])* $key:literal $(| $alias:literal)* $($required:ident)? => $visible:vis $field:ident: $type:ty,)*
    ) => {
        $($head)* {
            fn decode(&mut self, reader: &mut $crate::json::JsonReader<$life>) -> $crate::json::DecodeResult {
                $(let mut $field = false;)*
                reader.object(|reader, key| match key {
                    $($key $(| $alias)* => {
                        if std::mem::replace(&mut $field, true) {
                            return Err(reader.stop(concat!($key, " only once")));
                        }
                        self.$field.decode(reader)
                    })*
                    _ => reader.skip(),
                })?;
                $($(from_json! { @$required $field $key reader })?)*
                Ok(())
            }
        }
    };
    (@required $field:ident $key:literal $reader:ident) => {
        if !$field {
            return Err($reader.stop(concat!($key, " in the object before")));
        }
    };
}

pub(crate) use from_json;

/// A value as it is written, which somebody may read later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// A string, unescaped.
    pub fn text(self) -> Option<Cow<'a, str>> {
        decode_json(self.0).ok()
    }

    /// Itself, where anything is written, be it `null`.
    pub fn written(self) -> Option<RawJson<'a>> {
        (!self.0.is_empty()).then_some(self)
    }

    /// Where it stands in the body that it was read from.
    pub fn range_in(self, body: &[u8]) -> Range<usize> {
        let start = (self.0.as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
        start..start + self.0.len()
    }
}

impl<'a> FromJson<'a> for RawJson<'a> {
    #[inline]
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        self.0 = reader.raw()?;
        Ok(())
    }
}

/// A value that only is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Present;

impl<'a> FromJson<'a> for Present {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.skip()
    }
}

/// `null` is the same as absent.
impl<'a, T: FromJson<'a>> FromJson<'a> for Option<T> {
    #[inline]
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        if reader.null()? {
            return Ok(());
        }
        self.insert(T::default()).decode(reader)
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Box<T> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        T::decode(self, reader)
    }
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Vec<T> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.array(|reader| {
            let mut item = T::default();
            item.decode(reader)?;
            self.push(item);
            Ok(())
        })
    }
}

impl<'a> FromJson<'a> for Cow<'a, str> {
    #[inline]
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        *self = reader.text()?;
        Ok(())
    }
}

impl<'a> FromJson<'a> for bool {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        *self = reader.flag()?;
        Ok(())
    }
}

macro_rules! whole_number {
    ($($type:ty: $name:literal),*) => {$(
        impl<'a> FromJson<'a> for $type {
            fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
                let number = reader.number()?.parse();
                *self = number.map_err(|_| reader.stop($name))?;
                Ok(())
            }
        }
    )*};
}

whole_number! {
    u32: "a small non-negative integer",
    u64: "a non-negative integer",
    usize: "a non-negative integer",
    i64: "an integer"
}

impl<'a> FromJson<'a> for f64 {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        let number: f64 = reader.number()?.parse().unwrap_or(f64::INFINITY);
        if number.is_infinite() {
            return Err(reader.stop("a number within range"));
        }
        *self = number;
        Ok(())
    }
}
