//! What JSON can be read into, and the words to say which field of an object is which.

use std::borrow::Cow;
use std::ops::Range;

use super::reader::{Outcome, Reader, Unreadable};

/// Something that waits for a value. It is there before it is read, so that nothing is moved.
pub trait Readable<'a>: Default {
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome;
}

/// A whole text.
pub fn read_text<'a, T: Readable<'a>>(text: &'a str) -> Result<T, Unreadable> {
    let (mut value, mut reader) = (T::default(), Reader::new(text));
    let outcome = value.read(&mut reader);
    match outcome.and_then(|()| reader.end()) {
        Ok(()) => Ok(value),
        Err(_) => Err(reader.problem()),
    }
}

/// An object's fields, by the key that each is found under. Others are skipped; none may come
/// twice, and those that say `required` must come.
macro_rules! readable {
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident<$life:lifetime> { $($fields:tt)* }
    ) => {
        readable! { @struct [$(#[$meta])* $visible struct $name<$life>] $($fields)* }
        readable! { @impl [impl<$life> $crate::json::Readable<$life> for $name<$life>] $life $($fields)* }
    };
    (
        $(#[$meta:meta])*
        $visible:vis struct $name:ident { $($fields:tt)* }
    ) => {
        readable! { @struct [$(#[$meta])* $visible struct $name] $($fields)* }
        readable! { @impl [impl<'r> $crate::json::Readable<'r> for $name] 'r $($fields)* }
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
            fn read(&mut self, reader: &mut $crate::json::Reader<$life>) -> $crate::json::Outcome {
                $(let mut $field = false;)*
                reader.object(|reader, key| match key {
                    $($key $(| $alias)* => {
                        if std::mem::replace(&mut $field, true) {
                            return Err(reader.stop(concat!($key, " only once")));
                        }
                        self.$field.read(reader)
                    })*
                    _ => reader.skip(),
                })?;
                $($(readable! { @$required $field $key reader })?)*
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

pub(crate) use readable;

/// A value as it is written, which somebody may read later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

impl<'a> Raw<'a> {
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// A string, unescaped.
    pub fn text(self) -> Option<Cow<'a, str>> {
        read_text(self.0).ok()
    }

    /// Itself, where anything is written, be it `null`.
    pub fn written(self) -> Option<Raw<'a>> {
        (!self.0.is_empty()).then_some(self)
    }

    /// Where it stands in the body that it was read from.
    pub fn range_in(self, body: &[u8]) -> Range<usize> {
        let start = (self.0.as_ptr() as usize).saturating_sub(body.as_ptr() as usize);
        start..start + self.0.len()
    }
}

impl<'a> Readable<'a> for Raw<'a> {
    #[inline]
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        self.0 = reader.raw()?;
        Ok(())
    }
}

/// A value that only is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Present;

impl<'a> Readable<'a> for Present {
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        reader.skip()
    }
}

/// `null` is the same as absent.
impl<'a, T: Readable<'a>> Readable<'a> for Option<T> {
    #[inline]
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        if reader.null()? {
            return Ok(());
        }
        self.insert(T::default()).read(reader)
    }
}

impl<'a, T: Readable<'a>> Readable<'a> for Box<T> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        T::read(self, reader)
    }
}

impl<'a, T: Readable<'a>> Readable<'a> for Vec<T> {
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        reader.array(|reader| {
            let mut item = T::default();
            item.read(reader)?;
            self.push(item);
            Ok(())
        })
    }
}

impl<'a> Readable<'a> for Cow<'a, str> {
    #[inline]
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        *self = reader.text()?;
        Ok(())
    }
}

impl<'a> Readable<'a> for bool {
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        *self = reader.flag()?;
        Ok(())
    }
}

macro_rules! whole_number {
    ($($type:ty: $name:literal),*) => {$(
        impl<'a> Readable<'a> for $type {
            fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
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

impl<'a> Readable<'a> for f64 {
    fn read(&mut self, reader: &mut Reader<'a>) -> Outcome {
        let number: f64 = reader.number()?.parse().unwrap_or(f64::INFINITY);
        if number.is_infinite() {
            return Err(reader.stop("a number within range"));
        }
        *self = number;
        Ok(())
    }
}
