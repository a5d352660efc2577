//! Numbers as bytes (LEB128): seven bits each, the lowest first; the high bit is set if more bytes
//! follow.
//!
//! Small numbers are the common ones, and every number has exactly one encoding.

use super::CodecError;
use crate::Tick;

/// Reads from the front of a slice.
pub(crate) struct ByteReader<'a>(&'a [u8]);

impl<'a> ByteReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> ByteReader<'a> {
        ByteReader(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, CodecError> {
        let (first, rest) = self.0.split_first().ok_or(CodecError::TooShort)?;
        self.0 = rest;
        Ok(*first)
    }

    pub(crate) fn wide(&mut self) -> Result<u128, CodecError> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            let bits = u128::from(byte & 0x7F);
            // Rejects redundant encodings, whose last byte is zero, and bits that do not fit.
            let fits = shift < u128::BITS && bits << shift >> shift == bits;
            if !fits || byte == 0 && shift > 0 {
                return Err(CodecError::BadNumber);
            }
            number |= bits << shift;
            if byte < 0x80 {
                return Ok(number);
            }
            shift += 7;
        }
    }

    pub(crate) fn number(&mut self) -> Result<u64, CodecError> {
        u64::try_from(self.wide()?).map_err(|_| CodecError::BadNumber)
    }

    /// Reads a signed number in zigzag encoding: the lowest bit is the sign.
    pub(crate) fn signed(&mut self) -> Result<i128, CodecError> {
        let wide = self.wide()?;
        Ok((wide >> 1) as i128 ^ -((wide & 1) as i128))
    }

    pub(crate) fn tick(&mut self) -> Result<Tick, CodecError> {
        self.number().map(Tick::from_micros)
    }

    pub(crate) fn end(&self) -> Result<(), CodecError> {
        if self.0.is_empty() { Ok(()) } else { Err(CodecError::TooLong(self.0.len())) }
    }
}

pub(crate) fn put_wide(out: &mut Vec<u8>, mut number: u128) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

pub(crate) fn put_signed(out: &mut Vec<u8>, number: i128) {
    match i64::try_from(number) {
        Ok(narrow) => put_number(out, (narrow << 1 ^ narrow >> 63) as u64),
        Err(_) => put_wide(out, (number << 1 ^ number >> 127) as u128),
    }
}

pub(crate) fn put_tick(out: &mut Vec<u8>, tick: Tick) {
    put_number(out, tick.as_micros());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_is_read_as_it_was_written() {
        let edges = (0..128).flat_map(|bit| [1i128 << bit, (1i128 << bit).wrapping_sub(1), !(1i128 << bit)]);
        for number in edges.chain([0, -1, i128::MAX, i128::MIN]) {
            let mut bytes = Vec::new();
            put_signed(&mut bytes, number);
            let mut reader = ByteReader::new(&bytes);
            assert_eq!(reader.signed(), Ok(number));
            assert_eq!(reader.end(), Ok(()));
            assert_eq!(ByteReader::new(&bytes[..bytes.len() - 1]).signed(), Err(CodecError::TooShort));
        }
    }

    #[test]
    fn a_redundant_encoding_is_refused() {
        for bytes in [&[0x80, 0x00][..], &[0xFF, 0x80, 0x00]] {
            assert_eq!(ByteReader::new(bytes).wide(), Err(CodecError::BadNumber));
        }
        assert_eq!(ByteReader::new(&[0xFF; 40]).wide(), Err(CodecError::BadNumber));
        let mut bytes = [0xFF; 19];
        bytes[18] = 0x04;
        assert_eq!(ByteReader::new(&bytes).wide(), Err(CodecError::BadNumber));
        bytes[18] = 0x03;
        assert_eq!(ByteReader::new(&bytes).wide(), Ok(u128::MAX));
        assert_eq!(ByteReader::new(&bytes).number(), Err(CodecError::BadNumber));
    }
}
