//! One line of a GeoNames postal file: twelve columns, separated by tabs. Corrects nothing.

use super::degrees::Point;

/// A row as it is in the file. An empty text: the file has no value.
#[derive(Debug, Clone, PartialEq)]
pub struct Row<'a> {
    /// The ISO 3166 code of the country, in upper case.
    pub country: [u8; 2],
    /// The postal code.
    pub code: &'a str,
    /// The name of the place.
    pub place: &'a str,
    /// The name of the first division (the state).
    pub state: &'a str,
    /// The code of the first division.
    pub state_code: &'a str,
    /// The name of the second division (the county).
    pub county: &'a str,
    /// The code of the second division.
    pub county_code: &'a str,
    /// The coordinates. The file has 0, 0 if they are not known.
    pub point: Option<Point>,
    /// The accuracy of the coordinates: 1 (estimated) to 6 (centroid), 0 if the file has none.
    pub accuracy: u8,
}

/// Why a line is not a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// The line has this many columns instead of twelve.
    #[error("has {0} columns, not the 12 of a GeoNames postal file (tabs between them)")]
    Columns(usize),
    /// The line is not UTF-8.
    #[error("is not UTF-8")]
    Encoding,
    /// The country is not two letters.
    #[error("has no two-letter country code in column 1")]
    Country,
    /// The postal code is empty, or longer than any code.
    #[error("has no postal code of 1 to 20 characters in column 2")]
    Code,
    /// A text is longer than any name.
    #[error("has more than {LONGEST} bytes in column {0}")]
    Long(usize),
    /// Columns 10 and 11 are not coordinates.
    #[error("has no latitude and longitude in columns 10 and 11")]
    Coordinates,
    /// Column 12 is not an accuracy.
    #[error("has an accuracy in column 12 that is not a number from 1 to 6")]
    Accuracy,
}

/// The longest text, in bytes: 180 characters of GeoNames may have four each. A pack can hold more.
const LONGEST: usize = 720;
const LONGEST_CODE: usize = 20;

impl<'a> Row<'a> {
    /// Reads a line that was split at its tabs.
    pub fn read(line: &'a csv::ByteRecord) -> Result<Self, RowError> {
        if line.len() != 12 {
            return Err(RowError::Columns(line.len()));
        }
        let text = |column: usize| -> Result<&'a str, RowError> {
            let bytes = line.get(column).unwrap_or_default().trim_ascii();
            if bytes.len() > LONGEST {
                return Err(RowError::Long(column + 1));
            }
            std::str::from_utf8(bytes).map_err(|_| RowError::Encoding)
        };
        let code = text(1)?;
        if code.is_empty() || code.len() > LONGEST_CODE || code.chars().any(char::is_control) {
            return Err(RowError::Code);
        }
        Ok(Self {
            country: country(text(0)?).ok_or(RowError::Country)?,
            code,
            place: text(2)?,
            state: text(3)?,
            state_code: text(4)?,
            county: text(5)?,
            county_code: text(6)?,
            point: point(text(9)?, text(10)?)?,
            accuracy: accuracy(text(11)?)?,
        })
    }
}

/// Two letters as the code of a country, in upper case.
pub fn country(text: &str) -> Option<[u8; 2]> {
    let code: [u8; 2] = text.as_bytes().try_into().ok()?;
    code.iter().all(u8::is_ascii_alphabetic).then(|| code.map(|letter| letter.to_ascii_uppercase()))
}

fn point(lat: &str, lng: &str) -> Result<Option<Point>, RowError> {
    if lat.is_empty() && lng.is_empty() {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<f64>().map_err(|_| RowError::Coordinates);
    let (lat, lng) = (number(lat)?, number(lng)?);
    if lat == 0.0 && lng == 0.0 {
        return Ok(None);
    }
    Point::new(lat, lng).map(Some).ok_or(RowError::Coordinates)
}

fn accuracy(text: &str) -> Result<u8, RowError> {
    match text {
        "" => Ok(0),
        _ => text.parse().ok().filter(|accuracy| *accuracy <= 6).ok_or(RowError::Accuracy),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(String, Option<Point>), RowError> {
        let record = csv::ByteRecord::from(line.split('\t').collect::<Vec<_>>());
        Row::read(&record).map(|row| (row.place.to_owned(), row.point))
    }

    #[test]
    fn a_row_is_twelve_columns() {
        let (place, point) =
            read("US\t97209\tPortland\tOregon\tOR\tMultnomah\t051\t\t\t45.527\t-122.6854\t4").unwrap();
        assert_eq!((place.as_str(), point), ("Portland", Point::new(45.527, -122.6854)));
        assert_eq!(read("US\t97209\tPortland"), Err(RowError::Columns(3)));
    }

    #[test]
    fn a_point_at_zero_zero_is_no_point() {
        let (_, point) = read("US\t00001\tX\t\t\t\t\t\t\t0.0\t0\t").unwrap();
        assert_eq!(point, None);
        assert_eq!(read("US\t00001\tX\t\t\t\t\t\t\t\t\t").unwrap().1, None);
    }

    #[test]
    fn a_bad_column_is_named() {
        assert_eq!(read("USA\t1\tX\t\t\t\t\t\t\t1\t1\t"), Err(RowError::Country));
        assert_eq!(read("US\t\tX\t\t\t\t\t\t\t1\t1\t"), Err(RowError::Code));
        assert_eq!(read("US\t1\tX\t\t\t\t\t\t\t91\t1\t"), Err(RowError::Coordinates));
        assert_eq!(read("US\t1\tX\t\t\t\t\t\t\t1\tNaN\t"), Err(RowError::Coordinates));
        assert_eq!(read("US\t1\tX\t\t\t\t\t\t\t1\t1\t7"), Err(RowError::Accuracy));
        let named = |name: String| read(&format!("JP\t1\t{name}\t\t\t\t\t\t\t1\t1\t"));
        assert_eq!(named("x".repeat(721)), Err(RowError::Long(3)));
        assert_eq!(RowError::Long(3).to_string(), "has more than 720 bytes in column 3");
        let longest = "\u{6771}".repeat(180);
        assert_eq!(named(longest.clone()).map(|(place, _)| place), Ok(longest));
    }
}
