//! Encodes JSON as serde_json does, but faster for what streams are made of: short names and texts without escapes.
//!
//! serde_json checks every byte, also of field names; here names are known to need no escapes, and
//! texts are searched many bytes at a time.

use std::fmt::{self, Display, Write as _};

use serde::Serialize;
use serde::ser::{self, Error as _, Serializer};
use serde_json::{Error, Result};

use super::plain_bytes::plain;

/// Appends a value to `out`, byte for byte as serde_json would.
pub fn write_json(value: &impl Serialize, out: &mut Vec<u8>) -> Result<()> {
    value.serialize(JsonWriter::new(out))
}

/// The struct name by which serde_json marks a raw value.
const RAW: &str = "$serde_json::private::RawValue";

struct JsonWriter<'o> {
    out: &'o mut Vec<u8>,
    /// The next string is raw JSON.
    is_raw: bool,
}

impl<'o> JsonWriter<'o> {
    const fn new(out: &'o mut Vec<u8>) -> JsonWriter<'o> {
        JsonWriter { out, is_raw: false }
    }

    fn text(self, text: &str) {
        self.out.push(b'"');
        escape(text, self.out);
        self.out.push(b'"');
    }

    /// Leaves rare types to serde_json.
    fn plain(self, value: &impl Serialize) -> Result<()> {
        serde_json::to_writer(self.out, value)
    }
}

/// Appends a text with JSON escapes, without quotes.
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

/// Escapes everything that is written to it.
struct EscapingWriter<'o>(&'o mut Vec<u8>);

impl fmt::Write for EscapingWriter<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        escape(text, self.0);
        Ok(())
    }
}

/// A list or object whose closing bracket is still to be written.
struct OpenContainer<'o> {
    out: &'o mut Vec<u8>,
    has_some: bool,
    end: &'static [u8],
}

impl<'o> OpenContainer<'o> {
    fn begin(out: &'o mut Vec<u8>, begin: u8, end: &'static [u8]) -> OpenContainer<'o> {
        out.push(begin);
        OpenContainer {
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
        value.serialize(JsonWriter::new(self.out))
    }

    /// Appends a field; its name needs no escapes.
    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        debug_assert_eq!(plain(name.as_bytes()), name.len());
        self.separate();
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(JsonWriter::new(self.out))
    }

    fn finish(self) -> Result<()> {
        self.out.extend_from_slice(self.end);
        Ok(())
    }
}

/// Opens the object of an enum variant.
fn named<'o>(out: &'o mut Vec<u8>, variant: &str) -> &'o mut Vec<u8> {
    out.push(b'{');
    JsonWriter::new(out).text(variant);
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

impl<'o> Serializer for JsonWriter<'o> {
    type Ok = ();
    type Error = Error;
    type SerializeSeq = OpenContainer<'o>;
    type SerializeTuple = OpenContainer<'o>;
    type SerializeTupleStruct = OpenContainer<'o>;
    type SerializeTupleVariant = OpenContainer<'o>;
    type SerializeMap = OpenContainer<'o>;
    type SerializeStruct = StructWriter<'o>;
    type SerializeStructVariant = StructWriter<'o>;

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

    /// Formats straight into the output: the value may be large.
    fn collect_str<T: Display + ?Sized>(self, value: &T) -> Result<()> {
        self.out.push(b'"');
        let written = write!(EscapingWriter(self.out), "{value}");
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
        value.serialize(JsonWriter::new(out))?;
        out.push(b'}');
        Ok(())
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<OpenContainer<'o>> {
        Ok(OpenContainer::begin(self.out, b'[', b"]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<OpenContainer<'o>> {
        Ok(OpenContainer::begin(self.out, b'[', b"]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<OpenContainer<'o>> {
        Ok(OpenContainer::begin(self.out, b'[', b"]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<OpenContainer<'o>> {
        Ok(OpenContainer::begin(named(self.out, variant), b'[', b"]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<OpenContainer<'o>> {
        Ok(OpenContainer::begin(self.out, b'{', b"}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<StructWriter<'o>> {
        Ok(match name {
            RAW => StructWriter::Raw(self.out),
            _ => StructWriter::Fields(OpenContainer::begin(self.out, b'{', b"}")),
        })
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<StructWriter<'o>> {
        let out = named(self.out, variant);
        Ok(StructWriter::Fields(OpenContainer::begin(out, b'{', b"}}")))
    }
}

enum StructWriter<'o> {
    Fields(OpenContainer<'o>),
    Raw(&'o mut Vec<u8>),
}

impl StructWriter<'_> {
    fn field(&mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Result<()> {
        match self {
            StructWriter::Fields(open) => open.field(name, value),
            StructWriter::Raw(out) => value.serialize(JsonWriter { out, is_raw: true }),
        }
    }

    fn finish(self) -> Result<()> {
        match self {
            StructWriter::Fields(open) => open.finish(),
            StructWriter::Raw(_) => Ok(()),
        }
    }
}

macro_rules! elements {
    ($($trait:ident: $method:ident,)*) => {
        $(impl ser::$trait for OpenContainer<'_> {
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
        $(impl ser::$trait for StructWriter<'_> {
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

impl ser::SerializeMap for OpenContainer<'_> {
    type Ok = ();
    type Error = Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<()> {
        self.separate();
        let begin = self.out.len();
        key.serialize(JsonWriter::new(self.out))?;
        match self.out.get(begin) {
            Some(b'"') => Ok(()),
            _ => Err(Error::custom("a key must be a text")),
        }
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<()> {
        self.out.push(b':');
        value.serialize(JsonWriter::new(self.out))
    }

    fn end(self) -> Result<()> {
        self.finish()
    }
}

#[cfg(test)]
#[path = "tests/writer.rs"]
mod tests;
