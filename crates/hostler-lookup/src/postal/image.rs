//! The pack: sections of fixed records and one of strings, in one run of bytes that is made once and mapped by many. Knows
//! no places.
//!
//! `HOSTLERP`, version, checksum of all that follows; when the data was made; for each section where it lies and how long
//! it is; the sections. All numbers are little-endian, every record is so many 32-bit words.

use std::ops::Deref;
use std::path::Path;

use filebuffer::FileBuffer;

/// The first bytes of a pack.
pub const MAGIC: &[u8; 8] = b"HOSTLERP";
/// Raised whenever a reader of the old would misread the new.
const VERSION: u32 = 1;
const CHECKED_FROM: usize = 16;
const TABLE: usize = 24;
const HEADER: usize = TABLE + SECTIONS * 8;
const SECTIONS: usize = 11;

/// What lies in a pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageSection {
    /// Texts, each behind its length in two bytes; named by where they begin.
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
    /// Places again, state by state.
    OfRegions,
    /// Places again, city by city.
    OfCities,
    /// Where words begin in cities' folded names, by country and what follows.
    Words,
    /// Points of each country, as a tree.
    Points,
    /// For each five-digit code of the US its first place, from 1; 0 for none.
    Direct,
}

/// Why bytes are no pack.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ImageError {
    /// Something else.
    #[error("is no pack")]
    Magic,
    /// Of another Hostler.
    #[error(
        "is a pack of version {0}; this Hostler reads version {VERSION}: make it again with `hostler pack`"
    )]
    Version(u32),
    /// Cut off or changed.
    #[error("is damaged: its checksum is wrong; make it again with `hostler pack`")]
    Checksum,
    /// A section that is none.
    #[error("is damaged: section {0} lies outside of it")]
    Bounds(usize),
    /// Only the writer says so.
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
}

impl Image {
    /// Puts sections together, in their order.
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

    /// Maps a file. It must be replaced by renaming, never written to: what is mapped would change under its readers.
    pub fn map(path: &Path) -> std::io::Result<Result<Self, ImageError>> {
        Ok(Self::check(ImageBytes::Mapped(FileBuffer::open(path)?)))
    }

    fn check(bytes: ImageBytes) -> Result<Self, ImageError> {
        if bytes.len() < HEADER || &bytes[..8] != MAGIC {
            return Err(ImageError::Magic);
        }
        match word(&bytes, 8) {
            VERSION => {}
            other => return Err(ImageError::Version(other)),
        }
        if crc32fast::hash(&bytes[CHECKED_FROM..]) != word(&bytes, 12) {
            return Err(ImageError::Checksum);
        }
        let mut sections = [(0, 0); SECTIONS];
        for (at, section) in sections.iter_mut().enumerate() {
            let start = word(&bytes, TABLE + at * 8) as usize;
            let length = word(&bytes, TABLE + at * 8 + 4) as usize;
            let end = start.checked_add(length).filter(|end| *end <= bytes.len());
            *section = (start, end.ok_or(ImageError::Bounds(at))?);
        }
        Ok(Self { bytes, sections })
    }

    /// All of it, as it is written to a file.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The checksum: what tells two data sets apart.
    pub fn checksum(&self) -> u32 {
        word(&self.bytes, 12)
    }

    /// When the data was made, in seconds since 1970; 0 where nobody knows.
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

    /// A record; zeros beyond the end, where only a pack that lies could lead.
    pub fn record<const N: usize>(&self, section: ImageSection, at: u32) -> [u32; N] {
        let start = at as usize * 4 * N;
        let bytes = self.section(section).get(start..start + 4 * N);
        bytes.map_or([0; N], |bytes| std::array::from_fn(|part| word(bytes, part * 4)))
    }

    /// A text, by where it begins.
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

/// Records on their way into a section.
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
        Image::map(file.path()).unwrap()
    }

    #[test]
    fn what_was_packed_is_found_in_the_mapped_file() {
        let made = image();
        let mapped = opened(made.as_bytes()).unwrap();
        assert_eq!((mapped.made(), mapped.checksum()), (7, made.checksum()));
        assert_eq!(mapped.count::<2>(ImageSection::Places), 2);
        assert_eq!(mapped.record::<2>(ImageSection::Places, 1), [3, 4]);
        assert_eq!(mapped.text(0), "abc");
    }

    #[test]
    fn what_lies_outside_is_nothing() {
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
