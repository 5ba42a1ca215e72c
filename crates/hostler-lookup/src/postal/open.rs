//! Opens files of postal codes, texts or packs, and looks up in all of them. Knows neither formats of responses nor HTTP.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::build::Builder;
use super::clean;
use super::degrees::Point;
use super::image::{Image, ImageError, MAGIC};
use super::near::Neighbour;
use super::row::{Row, RowError, country};
use super::table::{Country, PostalPlace, PostalTable};
use crate::map::{MappedFile, Mapping};

/// Why a file cannot be used. The text names the file, and the line if there is one.
#[derive(Debug, thiserror::Error)]
pub enum PostalError {
    /// The file cannot be opened or read.
    #[error("{}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        error: std::io::Error,
    },
    /// A line is not a row.
    #[error("{}:{line}: the line {error}", .path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// The reason.
        error: RowError,
    },
    /// A pack cannot be used.
    #[error("{}: {error}", .path.display())]
    Pack {
        /// The file.
        path: PathBuf,
        /// The reason.
        error: ImageError,
    },
    /// The file has no rows.
    #[error("{}: has no postal codes", .0.display())]
    Empty(PathBuf),
    /// The file is the archive that GeoNames offers for download.
    #[error("{}: is a ZIP archive; unpack it first", .0.display())]
    Archive(PathBuf),
    /// The file is a pack, and a text was wanted.
    #[error("{}: is a pack already", .0.display())]
    Packed(PathBuf),
    /// Two files have this country.
    #[error("{}: has the country {country}, which another file has already", .path.display())]
    Twice {
        /// The file.
        path: PathBuf,
        /// The country.
        country: String,
    },
}

impl PostalError {
    /// Whether a file could not be read at all, whatever is in it.
    pub fn is_unreadable(&self) -> bool {
        matches!(self, Self::Io { .. })
    }
}

/// All postal codes of some files.
pub struct PostalFile {
    tables: Vec<PostalTable>,
    remarks: Vec<String>,
    /// The index of the table, by country.
    countries: Vec<(Country, usize)>,
}

impl PostalFile {
    /// Opens files. Packs are mapped; all texts together are built into one table. Large texts take a while.
    pub fn open(paths: &[PathBuf], mapping: Mapping<'_>) -> Result<Self, PostalError> {
        let (mut tables, mut texts, mut remarks) = (Vec::new(), Vec::new(), Vec::new());
        for path in paths {
            match kind(path)? {
                FileKind::Pack => {
                    let (image, remark) = map(path, mapping)?;
                    tables.push((path, PostalTable::new(image)));
                    remarks.extend(remark);
                }
                FileKind::Text => texts.push(path.clone()),
            }
        }
        if let Some(first) = texts.first() {
            tables.push((first, PostalTable::new(pack(&texts)?)));
        }
        let mut countries: Vec<(Country, usize)> = Vec::new();
        for (at, (path, table)) in tables.iter().enumerate() {
            for country in table.countries() {
                if countries.iter().any(|(known, _)| known.code == country.code) {
                    let country = country.as_str().to_owned();
                    return Err(PostalError::Twice { path: path.to_path_buf(), country });
                }
                countries.push((country, at));
            }
        }
        countries.sort_by_key(|(country, _)| country.code);
        Ok(Self { tables: tables.into_iter().map(|(_, table)| table).collect(), remarks, countries })
    }

    /// One sentence for each pack of which no copy could be made.
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// A country by its two-letter code, with its table. A territory of the US is found in the table of the US.
    pub fn country(&self, text: &str) -> Option<(&PostalTable, &Country)> {
        let code = country(text)?;
        let known = |code| self.countries.iter().find(|(country, _)| country.code == code);
        let (country, table) = known(code).or_else(|| clean::territory(code).and_then(|_| known(*b"US")))?;
        Some((&self.tables[*table], country))
    }

    /// All countries, by code.
    pub fn countries(&self) -> impl Iterator<Item = (&PostalTable, &Country)> {
        self.countries.iter().map(|(country, table)| (&self.tables[*table], country))
    }

    /// The places of a code. If the data has only the first part of the codes, that part is looked up.
    pub fn code<'a>(&self, table: &'a PostalTable, country: &Country, code: &str) -> Vec<PostalPlace<'a>> {
        let mut places = table.code(country, code);
        if places.is_empty()
            && let Some(part) = clean::known_part(country.code, code)
        {
            places = table.code(country, &part);
        }
        table.each(&places).collect()
    }

    /// The codes nearest to a point in all countries.
    pub fn near(&self, from: Point, most: usize, radius_km: Option<f64>) -> Vec<Neighbour<'_>> {
        let mut found: Vec<_> =
            self.tables.iter().flat_map(|table| table.near(from, None, most, radius_km)).collect();
        found.sort_by(|a, b| a.km.total_cmp(&b.km));
        found.truncate(most);
        found
    }

    /// The number of places.
    pub fn len(&self) -> u64 {
        self.tables.iter().map(|table| u64::from(table.len())).sum()
    }

    /// Whether there is no place.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A number that differs between data sets. Copies of a file have the same number, whenever they were made.
    pub fn fingerprint(&self) -> u32 {
        let mut hasher = crc32fast::Hasher::new();
        self.tables.iter().for_each(|table| hasher.update(&table.image().content().to_le_bytes()));
        hasher.finalize()
    }

    /// The date of the newest data in seconds since 1970, if it is known.
    pub fn made(&self) -> Option<u64> {
        self.tables.iter().map(|table| table.image().made()).max().filter(|made| *made > 0)
    }

    /// The bytes of all tables.
    pub fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.image().as_bytes().len() as u64).sum()
    }
}

/// Makes one pack from text files.
pub fn pack(paths: &[PathBuf]) -> Result<Image, PostalError> {
    let mut builder = Builder::default();
    let mut made = 0;
    for path in paths {
        let rows = read(path, &mut builder)?;
        if rows == 0 {
            return Err(PostalError::Empty(path.clone()));
        }
        made = made.max(made_at(path));
    }
    let name = || paths.first().cloned().unwrap_or_default();
    builder.finish(made).map_err(|error| PostalError::Pack { path: name(), error })
}

impl Image {
    /// Writes the pack to a temporary file and renames it. A process that has mapped the old file keeps it. After an error, such as that of
    /// a full disk, nothing is left.
    pub fn write(&self, path: &Path) -> std::io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        let beside = PathBuf::from(beside);
        let mut file = File::create(&beside)?;
        let written = file.write_all(self.as_bytes()).and_then(|()| file.sync_all());
        let renamed = written.and_then(|()| std::fs::rename(&beside, path));
        if renamed.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        renamed
    }
}

enum FileKind {
    Text,
    Pack,
}

fn kind(path: &Path) -> Result<FileKind, PostalError> {
    let io = |error| PostalError::Io { path: path.to_owned(), error };
    let mut start = Vec::new();
    File::open(path).and_then(|file| file.take(8).read_to_end(&mut start)).map_err(io)?;
    kind_of(path, &start)
}

/// `start`: the first bytes of the file, eight or more if it has as many.
fn kind_of(path: &Path, start: &[u8]) -> Result<FileKind, PostalError> {
    match start {
        [] => Err(PostalError::Empty(path.to_owned())),
        start if start.starts_with(MAGIC) => Ok(FileKind::Pack),
        start if start.starts_with(b"PK\x03\x04") => Err(PostalError::Archive(path.to_owned())),
        _ => Ok(FileKind::Text),
    }
}

/// The pack, and why no copy of it could be made.
fn map(path: &Path, mapping: Mapping<'_>) -> Result<(Image, Option<String>), PostalError> {
    let mapped = MappedFile::open(path, mapping);
    let mapped = mapped.map_err(|error| PostalError::Io { path: path.to_owned(), error })?;
    let image = Image::of(mapped.bytes);
    let image = image.map_err(|error| PostalError::Pack { path: path.to_owned(), error })?;
    Ok((image, mapped.remark))
}

/// Reads a text into a builder and returns the number of rows. Opens the path once: it may be that of a pipe.
fn read(path: &Path, builder: &mut Builder) -> Result<u64, PostalError> {
    let io = |error| PostalError::Io { path: path.to_owned(), error };
    let mut file = BufReader::with_capacity(1 << 18, File::open(path).map_err(io)?);
    if let FileKind::Pack = kind_of(path, file.fill_buf().map_err(io)?)? {
        return Err(PostalError::Packed(path.to_owned()));
    }
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(b'\t')
        .quoting(false)
        .flexible(true)
        .has_headers(false)
        .from_reader(file);
    let (mut line, mut rows) = (csv::ByteRecord::new(), 0);
    while reader.read_byte_record(&mut line).map_err(|error| io(error.into()))? {
        let row = Row::read(&line).map_err(|error| PostalError::Row {
            path: path.to_owned(),
            line: line.position().map_or(0, csv::Position::line),
            error,
        })?;
        builder.add(row);
        rows += 1;
    }
    Ok(rows)
}

/// When a file was modified. Files from an npm package have a date in 1985, which counts as not known.
fn made_at(path: &Path) -> u64 {
    const YEAR_2000: u64 = 946_684_800;
    let written = std::fs::metadata(path).and_then(|data| data.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    let made = written.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    if made < YEAR_2000 { 0 } else { made }
}
