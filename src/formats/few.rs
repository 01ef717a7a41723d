//! A list that nearly always holds one thing, which then needs no memory of its own.

use crate::json::{DecodeResult, FromJson, JsonReader};

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

    pub(in crate::formats) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.first.iter_mut().chain(&mut self.more)
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

impl<'a, T: FromJson<'a>> FromJson<'a> for Few<T> {
    fn decode(&mut self, reader: &mut JsonReader<'a>) -> DecodeResult {
        reader.array(|reader| {
            if self.first.is_none() {
                return self.first.insert(T::default()).decode(reader);
            }
            let mut next = T::default();
            next.decode(reader)?;
            self.more.push(next);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Few;
    use crate::json::decode_json;

    #[test]
    fn all_of_a_list_is_there_in_its_order() {
        for list in [&[][..], &[1u64], &[1, 2], &[1, 2, 3]] {
            let text = serde_json::to_string(list).expect("JSON");
            let mut few: Few<u64> = decode_json(&text).expect("a list");
            assert_eq!((few.len(), few.is_empty()), (list.len(), list.is_empty()));
            assert!(few.iter().eq(list));
            assert!(few.iter_mut().eq(list));
            assert!(few.into_iter().eq(list.iter().copied()));
        }
        assert!(decode_json::<Few<u64>>("{}").is_err());
    }
}
