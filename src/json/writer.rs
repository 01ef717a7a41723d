//! JSON as it goes out: short names and texts, of which nearly none has to be escaped.
//!
//! serde_json looks at every byte by itself, those of the fields' names too; here names are known
//! to be plain, and texts are looked through many bytes at a time.

use std::fmt::{self, Display, Write as _};

use serde::Serialize;
use serde::ser::{self, Error as _, Serializer};
use serde_json::{Error, Result};

use super::plain::plain;

/// Writes a value behind what is there, as serde_json would.
pub fn write_json(value: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    value.serialize(Writer::new(out))
}

/// What serde_json calls a struct whose only field is JSON already.
const RAW: &str = "$serde_json::private::RawValue";

struct Writer<'o> {
    out: &'o mut Vec<u8>,
    /// The text that comes is JSON already.
    is_raw: bool,
}

impl<'o> Writer<'o> {
    const fn new(out: &'o mut Vec<u8>) -> Writer<'o> {
        Writer { out, is_raw: false }
    }

    fn text(self, text: &str) {
        self.out.push(b'"');
        escape(text, self.out);
        self.out.push(b'"');
    }

    /// What is not on the way of every word is left to serde_json.
    fn plain(self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer(self.out, value)
    }
}

/// What stands between the quotes of a text.
pub fn escape(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at(plain(rest));
        out.extend_from_slice(plain);
        let [byte, after @ ..] = special else { return };
        escape_byte(*byte, out);
        rest = after;
    }
}

fn escape_byte(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let letter = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\t' => b't',
        b'\r' => b'r',
        0x08 => b'b',
        0x0c => b'f',
        _ => {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', DIGITS[high], DIGITS[low]]);
            return;
        }
    };
    out.extend_from_slice(&[b'\\', letter]);
}

/// What is written to it is escaped.
struct Pieces<'o>(&'o mut Vec<u8>);

impl fmt::Write for Pieces<'_> {
    fn write_str(&mut self, piece: &str) -> fmt::Result {
        escape(piece, self.0);
        Ok(())
    }
}

/// A list or an object that has been begun.
struct Open<'o> {
    out: &'o mut Vec<u8>,
    has_some: bool,
    end: &'static [u8],
}

impl<'o> Open<'o> {
    fn begin(out: &'o mut Vec<u8>, begin: u8, end: &'static [u8]) -> Open<'o> {
        out.push(begin);
        Open {
            out,
            has_some: false,
            end,
        }
    }

    fn separate(&mut self) {
        if self.has_some {
            self.out.push(b',');
        }
        self.has_some = true;
    }

    fn item(&mut self, value: &(impl Serialize + ?Sized)) -> Result<()> {
        self.separate();
        value.serialize(Writer::new(self.out))
    }

    /// Names of fields are words.
    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        debug_assert_eq!(plain(name.as_bytes()), name.len());
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(Writer::new(self.out))
    }

    fn finish(self) -> Result<()> {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

/// With the name of a variant before it.
fn named<'o>(out: &'o mut Vec<u8>, variant: &str) -> &'o mut Vec<u8> {
    out.push(b'{');
    Writer::new(out).text(variant);
    out.push(b':');
    out
}

macro_rules! left_to_serde_json {
    ($($method:ident: $type:ty,)*) => {
        $(fn $method(self, value: $type) -> Result<()> {
            self.plain(&value)
        })*
    };
}

impl<'o> Serializer for Writer<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = Open<'o>;
    type SerializeTuple = Open<'o>;
    type SerializeTupleStruct = Open<'o>;
    type SerializeTupleVariant = Open<'o>;
    type SerializeMap = Open<'o>;
    type SerializeStruct = Struct<'o>;
    type SerializeStructVariant = Struct<'o>;

    left_to_serde_json! {
        serialize_i8: i8,
        serialize_i16: i16,
        serialize_i32: i32,
        serialize_i64: i64,
        serialize_i128: i128,
        serialize_u8: u8,
        serialize_u16: u16,
        serialize_u32: u32,
        serialize_u64: u64,
        serialize_u128: u128,
        serialize_f32: f32,
        serialize_f64: f64,
        serialize_char: char,
        serialize_bytes: &[u8],
    }

    fn serialize_bool(self, value: bool) -> Result<()> {
        let word = if value { "true" } else { "false" };
        self.out.extend_from_slice(word.as_bytes());
        Ok(())
    }

    fn serialize_str(self, value: &str) -> Result<()> {
        match self.is_raw {
            true => self.out.extend_from_slice(value.as_bytes()),
            false => self.text(value),
        }
        Ok(())
    }

    /// Without a text in between: what is written in pieces may be large.
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<()> {
        self.out.push(b'"');
        let written = write!(Pieces(self.out), "{value}");
        self.out.push(b'"');
        written.map_err(Error::custom)
    }

    fn serialize_none(self) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<()> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<()> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<()> {
        self.text(variant);
        Ok(())
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<()> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<()> {
        let out = named(self.out, variant);
        value.serialize(Writer::new(out))?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'o>> {
        Ok(Open::begin(self.out, b'[', b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'o>> {
        Ok(Open::begin(self.out, b'[', b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'o>> {
        Ok(Open::begin(self.out, b'[', b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Open<'o>> {
        Ok(Open::begin(named(self.out, variant), b'[', b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'o>> {
        Ok(Open::begin(self.out, b'{', b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Struct<'o>> {
        Ok(match name {
            RAW => Struct::Raw(self.out),
            _ => Struct::Fields(Open::begin(self.out, b'{', b"}")),
        })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Struct<'o>> {
        let out = named(self.out, variant);
        Ok(Struct::Fields(Open::begin(out, b'{', b"}}")))
    }
}

enum Struct<'o> {
    Fields(Open<'o>),
    Raw(&'o mut Vec<u8>),
}

impl Struct<'_> {
    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        match self {
            Struct::Fields(open) => open.field(name, value),
            Struct::Raw(out) => value.serialize(Writer { out, is_raw: true }),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            Struct::Fields(open) => open.finish(),
            Struct::Raw(_) => Ok(()),
        }
    }
}

macro_rules! elements {
    ($($trait:ident: $method:ident,)*) => {
        $(impl ser::$trait for Open<'_> {
            type Ok = ();
            type Error = Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
                self.item(value)
            }

            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

elements! {
    SerializeSeq: serialize_element,
    SerializeTuple: serialize_element,
    SerializeTupleStruct: serialize_field,
    SerializeTupleVariant: serialize_field,
}

macro_rules! fields {
    ($($trait:ident,)*) => {
        $(impl ser::$trait for Struct<'_> {
            type Ok = ();
            type Error = Error;

            fn serialize_field<T: Serialize + ?Sized>(
                &mut self,
                name: &'static str,
                value: &T,
            ) -> Result<()> {
                self.field(name, value)
            }

            fn end(self) -> Result<()> {
                self.finish()
            }
        })*
    };
}

fields! {
    SerializeStruct,
    SerializeStructVariant,
}

impl ser::SerializeMap for Open<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.separate();
        let begin = self.out.len();
        key.serialize(Writer::new(self.out))?;
        match self.out.get(begin) {
            Some(b'"') => Ok(()),
            _ => Err(Error::custom("a key must be a text")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.out.push(b':');
        value.serialize(Writer::new(self.out))
    }

    fn end(self) -> Result<()> {
        self.finish()
    }
}

#[cfg(test)]
#[path = "tests/writer.rs"]
mod tests;
