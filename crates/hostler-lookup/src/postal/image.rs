//! The pack: sections of fixed-size records and one of strings, in one block of bytes. It is made once and can be mapped
//! by many processes. Knows no places.
//!
//! The layout: `HOSTLERP`, the version, the checksum of everything after it, the date of the data, the offset and length
//! of each section, the sections. All numbers are little-endian. A record consists of 32-bit words.

use std::ops::Deref;

use filebuffer::FileBuffer;

/// The first bytes of a pack.
pub const MAGIC: &[u8; 8] = b"HOSTLERP";
/// Must be raised when a reader of the old version would misread the new one.
const VERSION: u32 = 1;
const CHECKED_FROM: usize = 16;
const TABLE: usize = 24;
const HEADER: usize = TABLE + SECTIONS * 8;
const SECTIONS: usize = 11;

/// The sections of a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSection {
    /// Texts, each after its length in two bytes. The number of a text is its offset.
    Strings,
    /// Countries, by code.
    Countries,
    /// States, by country and code.
    Regions,
    /// Counties.
    Counties,
    /// Cities, by state and folded name.
    Cities,
    /// Places, by country and folded code.
    Places,
    /// The places of each state.
    OfRegions,
    /// The places of each city.
    OfCities,
    /// Where words begin in the cities' folded names, by country and the rest of the name.
    Words,
    /// The points of each country, as a tree.
    Points,
    /// The first place of each five-digit US code, counted from 1. 0: there is none.
    Direct,
}

/// Why bytes cannot be used as a pack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// The first bytes are not those of a pack.
    #[error("is not a pack")]
    Magic,
    /// The pack has another version.
    #[error(
        "is a pack of version {0}; this Hostler reads version {VERSION}: make it again with `hostler pack`"
    )]
    Version(u32),
    /// The checksum is wrong: the pack is truncated or changed.
    #[error("is damaged: its checksum is wrong; make it again with `hostler pack`")]
    Checksum,
    /// The bounds of this section are wrong.
    #[error("is damaged: section {0} is outside of the file")]
    Bounds(usize),
    /// The pack would be too large. Only [`Image::make`] returns this.
    #[error("would be larger than 4 GiB")]
    Large,
}

enum ImageBytes {
    Made(Vec<u8>),
    Mapped(FileBuffer),
}

impl Deref for ImageBytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Made(bytes) => bytes,
            Self::Mapped(file) => file,
        }
    }
}

/// A pack, in memory or mapped.
pub struct Image {
    bytes: ImageBytes,
    sections: [(usize, usize); SECTIONS],
    content: u32,
}

impl Image {
    /// Makes a pack from its sections, in their order.
    pub fn make(made: u64, sections: [Vec<u8>; SECTIONS]) -> Result<Self, ImageError> {
        let mut bytes = vec![0; HEADER];
        bytes.reserve_exact(sections.iter().map(Vec::len).sum());
        for (at, section) in sections.into_iter().enumerate() {
            let start = u32::try_from(bytes.len()).map_err(|_| ImageError::Large)?;
            let length = u32::try_from(section.len()).map_err(|_| ImageError::Large)?;
            let entry = TABLE + at * 8;
            bytes[entry..entry + 4].copy_from_slice(&start.to_le_bytes());
            bytes[entry + 4..entry + 8].copy_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(&section);
        }
        bytes[16..24].copy_from_slice(&made.to_le_bytes());
        let checksum = crc32fast::hash(&bytes[CHECKED_FROM..]);
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
        Self::check(ImageBytes::Made(bytes))
    }

    /// Uses the bytes of a mapped file.
    pub(crate) fn of(file: FileBuffer) -> Result<Self, ImageError> {
        Self::check(ImageBytes::Mapped(file))
    }

    fn check(bytes: ImageBytes) -> Result<Self, ImageError> {
        if bytes.len() < HEADER || &bytes[..8] != MAGIC {
            return Err(ImageError::Magic);
        }
        match word(&bytes, 8) {
            VERSION => {}
            other => return Err(ImageError::Version(other)),
        }
        let (mut all, mut content) = (crc32fast::Hasher::new(), crc32fast::Hasher::new());
        all.update(&bytes[CHECKED_FROM..TABLE]);
        content.update(&bytes[TABLE..]);
        all.combine(&content);
        if all.finalize() != word(&bytes, 12) {
            return Err(ImageError::Checksum);
        }
        let mut sections = [(0, 0); SECTIONS];
        for (at, section) in sections.iter_mut().enumerate() {
            let start = word(&bytes, TABLE + at * 8) as usize;
            let length = word(&bytes, TABLE + at * 8 + 4) as usize;
            let end = start.checked_add(length).filter(|end| *end <= bytes.len());
            *section = (start, end.ok_or(ImageError::Bounds(at))?);
        }
        Ok(Self { bytes, sections, content: content.finalize() })
    }

    /// All bytes, as they are written to a file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The checksum of everything but the date. It differs between two data sets.
    pub fn content(&self) -> u32 {
        self.content
    }

    /// The date of the data in seconds since 1970. 0: not known.
    pub fn made(&self) -> u64 {
        u64::from(word(&self.bytes, 16)) | u64::from(word(&self.bytes, 20)) << 32
    }

    fn section(&self, section: ImageSection) -> &[u8] {
        let (start, end) = self.sections[section as usize];
        &self.bytes[start..end]
    }

    /// How many records of `N` words a section has.
    pub fn count<const N: usize>(&self, section: ImageSection) -> u32 {
        (self.section(section).len() / (4 * N)) as u32
    }

    /// A record. All zero if it is beyond the end, to which only a damaged pack can lead.
    pub fn record<const N: usize>(&self, section: ImageSection, at: u32) -> [u32; N] {
        let start = at as usize * 4 * N;
        let bytes = self.section(section).get(start..start + 4 * N);
        bytes.map_or([0; N], |bytes| std::array::from_fn(|part| word(bytes, part * 4)))
    }

    /// The text with this offset.
    pub fn text(&self, at: u32) -> &str {
        let strings = self.section(ImageSection::Strings);
        let text = strings.get(at as usize..).and_then(|rest| {
            let (length, rest) = rest.split_first_chunk::<2>()?;
            rest.get(..usize::from(u16::from_le_bytes(*length)))
        });
        text.and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |word| u32::from_le_bytes(*word))
}

/// Joins records to the bytes of a section.
pub fn records<const N: usize>(records: impl IntoIterator<Item = [u32; N]>) -> Vec<u8> {
    records.into_iter().flatten().flat_map(u32::to_le_bytes).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> Image {
        let mut sections: [Vec<u8>; SECTIONS] = Default::default();
        sections[ImageSection::Strings as usize] = b"\x03\0abc\xff\xff".to_vec();
        sections[ImageSection::Places as usize] = records([[1, 2], [3, 4]]);
        Image::make(7, sections).unwrap()
    }

    fn opened(bytes: &[u8]) -> Result<Image, ImageError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        Image::of(FileBuffer::open(file.path()).unwrap())
    }

    #[test]
    fn a_packed_row_is_found_in_the_mapped_file() {
        let made = image();
        let mapped = opened(made.as_bytes()).unwrap();
        assert_eq!((mapped.made(), mapped.content()), (7, made.content()));
        assert_eq!(mapped.count::<2>(ImageSection::Places), 2);
        assert_eq!(mapped.record::<2>(ImageSection::Places, 1), [3, 4]);
        assert_eq!(mapped.text(0), "abc");
    }

    #[test]
    fn an_offset_outside_the_file_gives_nothing() {
        let image = image();
        assert_eq!(image.record::<2>(ImageSection::Places, 2), [0, 0]);
        assert_eq!(image.record::<2>(ImageSection::Places, u32::MAX), [0, 0]);
        assert_eq!((image.text(5), image.text(1), image.text(u32::MAX)), ("", "", ""));
    }

    #[test]
    fn a_pack_that_was_cut_or_changed_anywhere_is_refused() {
        let good = image().as_bytes().to_vec();
        for length in 0..good.len() {
            assert!(opened(&good[..length]).is_err(), "cut at {length}");
        }
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 0x40;
            assert!(opened(&bad).is_err(), "changed at {at}");
        }
    }

    #[test]
    fn a_pack_of_another_version_says_so() {
        let mut old = image().as_bytes().to_vec();
        old[8] = 9;
        assert_eq!(opened(&old).err(), Some(ImageError::Version(9)));
    }
}
