//! A list that nearly always holds one thing, which then needs no memory of its own.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

pub(in crate::formats) struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Few<T> {
    pub(in crate::formats) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    pub(in crate::formats) fn iter(&self) -> impl Iterator<Item = &T> {
        self.first.iter().chain(&self.more)
    }

    pub(in crate::formats) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }
}

impl<T> Default for Few<T> {
    fn default() -> Few<T> {
        Few {
            first: None,
            more: Vec::new(),
        }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Few<T>, D::Error> {
        struct List<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for List<T> {
            type Value = Few<T>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("a sequence")
            }

            fn visit_seq<S: SeqAccess<'de>>(self, mut list: S) -> Result<Few<T>, S::Error> {
                let first = list.next_element()?;
                let mut more = Vec::new();
                while let Some(next) = list.next_element()? {
                    more.push(next);
                }
                Ok(Few { first, more })
            }
        }

        deserializer.deserialize_seq(List(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::Few;

    #[test]
    fn all_of_a_list_is_there_in_its_order() {
        for list in [&[][..], &[1], &[1, 2], &[1, 2, 3]] {
            let text = serde_json::to_string(list).expect("JSON");
            let few: Few<u8> = serde_json::from_str(&text).expect("a list");
            assert_eq!((few.len(), few.is_empty()), (list.len(), list.is_empty()));
            assert!(few.iter().eq(list));
            assert!(few.into_iter().eq(list.iter().copied()));
        }
        assert!(serde_json::from_str::<Few<u8>>("{}").is_err());
    }
}
