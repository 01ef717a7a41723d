//! The trait of types that are decoded from JSON, and the macro that implements it for structs.

use std::borrow::Cow;
use std::ops::Range;

use smallvec::SmallVec;

use super::reader::{DecodeResult, JsonError, JsonReader};

/// A type that is decoded from JSON, in place, so that nothing is moved.
pub trait FromJson<'a>: Default {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult;
}

/// Decodes a whole text.
pub fn decode_json<'a, T: FromJson<'a>>(text: &'a str) -> Result<T, JsonError> {
    let (mut value, mut reader) = (T::default(), JsonReader::new(text));
    let outcome = value.decode(&mut reader);
    match outcome.and_then(|()| reader.end()) {
        Ok(()) => Ok(value),
        Err(_) => Err(reader.problem()),
    }
}

/// Defines a struct that is decoded from an object: `"key" => field: Type`. Unknown keys are skipped, a
/// duplicate key is an error, and so is a missing key that is marked `required`.
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

/// A value as its source text, to be decoded later.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RawJson<'a>(&'a str);

impl<'a> RawJson<'a> {
    pub const fn get(self) -> &'a str {
        self.0
    }

    /// The unescaped text, where it is a string.
    pub fn text(self) -> Option<Cow<'a, str>> {
        decode_json(self.0).ok()
    }

    /// `None` where the field is absent; an explicit `null` counts as present.
    pub fn written(self) -> Option<RawJson<'a>> {
        (!self.0.is_empty()).then_some(self)
    }

    /// Its range in the body that it was decoded from.
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

/// A value of which only the presence counts.
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

/// The items of an array. An item of two bytes may be decoded to some hundred, so that their number bounds what a body takes.
const MAX_ITEMS: usize = 250_000;
const FEWER_ITEMS: &str = "at most 250000 items in an array";

/// The items of an array that nearly always holds one.
const MAX_FEW_ITEMS: usize = 10_000;
const FEW_ITEMS: &str = "at most 10000 items in this array";

/// How many times its length the items of all arrays in a text may take, how much in all, and what of that is of no account: items
/// of two bytes may be decoded to some hundred.
const MAX_ITEM_TIMES: usize = 16;
const MAX_ITEM_BYTES: usize = 256 << 20;
const SMALL_ITEMS: usize = 8 << 20;

/// Counts one more item, which takes so many bytes.
#[inline]
fn count_item(reader: &mut JsonReader<'_>, bytes: usize) -> DecodeResult {
    reader.items += bytes;
    let most = (reader.text.len() * MAX_ITEM_TIMES).clamp(SMALL_ITEMS, MAX_ITEM_BYTES);
    if reader.items > most {
        return Err(reader.stop("fewer items for its length"));
    }
    Ok(())
}

impl<'a, T: FromJson<'a>> FromJson<'a> for Vec<T> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.array(|reader| {
            if self.len() == MAX_ITEMS {
                return Err(reader.stop(FEWER_ITEMS));
            }
            count_item(reader, size_of::<T>())?;
            let mut item = T::default();
            item.decode(reader)?;
            self.push(item);
            Ok(())
        })
    }
}

/// For arrays that nearly always hold one item, which then is not on the heap.
impl<'a, T: FromJson<'a>> FromJson<'a> for SmallVec<[T; 1]> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.array(|reader| {
            if self.len() == MAX_FEW_ITEMS {
                return Err(reader.stop(FEW_ITEMS));
            }
            count_item(reader, size_of::<T>())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arrays_hold_so_many_items() {
        let array = |items: usize| format!("[{}0]", "0,".repeat(items - 1));
        assert!(decode_json::<Vec<Present>>(&array(MAX_ITEMS)).is_ok());
        let problem = decode_json::<Vec<Present>>(&array(MAX_ITEMS + 1)).err();
        assert!(problem.is_some_and(|problem| problem.to_string().contains(FEWER_ITEMS)));
        assert!(decode_json::<SmallVec<[Present; 1]>>(&array(MAX_FEW_ITEMS)).is_ok());
        let problem = decode_json::<SmallVec<[Present; 1]>>(&array(MAX_FEW_ITEMS + 1)).err();
        assert!(problem.is_some_and(|problem| problem.to_string().contains(FEW_ITEMS)));
    }

    /// An item that takes far more memory than its text.
    #[derive(Default)]
    struct WideItem {
        _room: [u64; 32],
    }

    impl<'a> FromJson<'a> for WideItem {
        fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
            reader.skip()
        }
    }

    #[test]
    fn the_items_of_all_arrays_are_counted_together() {
        let lists =
            |lists: usize| format!("[{}]", vec![vec!["0"; 1000].join(","); lists].join("],["));
        let decoded =
            |count: usize| decode_json::<Vec<Vec<WideItem>>>(&format!("[{}]", lists(count)));
        assert!(decoded(20).is_ok());
        let problem = decoded(40).err().expect("too many").to_string();
        assert!(problem.contains("fewer items"), "{problem}");
    }
}
