//! Little-endian reading with every length checked, and the matching writer.

use crate::{Error, Result};

/// Reads a byte string front to back. Nothing is allocated by a length that the input only claims.
#[derive(Clone)]
pub(super) struct Reader<'a> {
    data: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, at: 0 }
    }

    pub(super) fn remaining(&self) -> usize {
        self.data.len() - self.at
    }

    /// The next `len` bytes.
    pub(super) fn take(&mut self, len: u64, what: &str) -> Result<&'a [u8]> {
        let rest = &self.data[self.at..];
        let len = usize::try_from(len).ok().filter(|len| *len <= rest.len()).ok_or_else(|| {
            Error::data_loss(format!(
                "{what} at byte {} claims {len} bytes, {} are left",
                self.at,
                rest.len()
            ))
        })?;
        self.at += len;
        Ok(&rest[..len])
    }

    pub(super) fn u8(&mut self, what: &str) -> Result<u8> {
        self.array(what).map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self, what: &str) -> Result<u16> {
        self.array(what).map(u16::from_le_bytes)
    }

    pub(super) fn u32(&mut self, what: &str) -> Result<u32> {
        self.array(what).map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self, what: &str) -> Result<u64> {
        self.array(what).map(u64::from_le_bytes)
    }

    /// A byte string with its length before it.
    pub(super) fn blob(&mut self, what: &str) -> Result<&'a [u8]> {
        let len = self.u64(what)?;
        self.take(len, what)
    }

    /// A UTF-8 string with its length before it.
    pub(super) fn str(&mut self, what: &str) -> Result<&'a str> {
        let at = self.at;
        std::str::from_utf8(self.blob(what)?)
            .map_err(|e| Error::data_loss(format!("{what} at byte {at} is not UTF-8: {e}")))
    }

    /// A count of items of at least `item_size` bytes each, refused if they cannot all be there.
    pub(super) fn count(&mut self, item_size: usize, what: &str) -> Result<usize> {
        let at = self.at;
        let count = self.u64(what)?;
        let most = self.remaining() / item_size.max(1);
        usize::try_from(count).ok().filter(|count| *count <= most).ok_or_else(|| {
            Error::data_loss(format!(
                "{what} at byte {at} claims {count} items, the rest has room for {most} at most"
            ))
        })
    }

    /// Refuses input that goes on after its end.
    pub(super) fn finish(self) -> Result<()> {
        match self.remaining() {
            0 => Ok(()),
            left => {
                Err(Error::data_loss(format!("{left} bytes follow the end at byte {}", self.at)))
            }
        }
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N]> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N as u64, what)?);
        Ok(array)
    }
}

/// Builds a byte string.
#[derive(Default)]
pub(super) struct Writer {
    data: Vec<u8>,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn u8(&mut self, value: u8) {
        self.data.push(value);
    }

    pub(super) fn u16(&mut self, value: u16) {
        self.data.extend(value.to_le_bytes());
    }

    pub(super) fn u32(&mut self, value: u32) {
        self.data.extend(value.to_le_bytes());
    }

    pub(super) fn count(&mut self, value: usize) {
        self.data.extend((value as u64).to_le_bytes());
    }

    /// A byte string with its length before it.
    pub(super) fn blob(&mut self, bytes: &[u8]) {
        self.count(bytes.len());
        self.data.extend_from_slice(bytes);
    }

    pub(super) fn words(&mut self, words: &[u32]) {
        self.data.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    }

    pub(super) fn finish(self) -> Vec<u8> {
        self.data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claimed_length_of_u64_max_is_refused_with_what_is_left() {
        let mut bytes = u64::MAX.to_le_bytes().to_vec();
        bytes.extend([1, 2, 3]);
        let error = Reader::new(&bytes).blob("name").unwrap_err();
        assert_eq!(error.message(), "name at byte 8 claims 18446744073709551615 bytes, 3 are left");
        assert!(Reader::new(&bytes).count(1, "list").unwrap_err().message().contains("at most"));
    }

    #[test]
    fn what_the_writer_writes_the_reader_reads() {
        let mut writer = Writer::new();
        writer.u8(1);
        writer.u16(2);
        writer.u32(3);
        writer.blob(b"abc");
        writer.words(&[7, 8]);
        let bytes = writer.finish();
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.u8("").unwrap(), 1);
        assert_eq!(reader.u16("").unwrap(), 2);
        assert_eq!(reader.u32("").unwrap(), 3);
        assert_eq!(reader.str("").unwrap(), "abc");
        assert_eq!((reader.u32("").unwrap(), reader.u32("").unwrap()), (7, 8));
        reader.finish().unwrap();
    }

    #[test]
    fn bytes_after_the_end_are_refused() {
        assert!(Reader::new(&[0]).finish().unwrap_err().message().starts_with("1 bytes follow"));
    }
}
