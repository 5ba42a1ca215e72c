//! Where a postal code is, which codes a city has, what is near: GeoNames' files as one table. Knows no HTTP.
//!
//! `row` reads a line, `clean` sets it right, `build` makes a pack of many (`image`), `table` finds what it says, `tree` what
//! is near, `search` what a half-typed name could become. [`PostalFile`] is all of it, over several files.

mod build;
mod clean;
mod degrees;
mod fold;
mod image;
mod near;
mod open;
mod row;
mod search;
mod shape;
mod table;
#[cfg(test)]
mod tests;
mod tree;

pub use degrees::{Degrees, EARTH_KM, Point};
pub use image::ImageError;
pub use near::Neighbour;
pub use open::{PostalError, PostalFile, pack};
pub use row::RowError;
pub use search::Suggestion;
pub use shape::Shapes;
pub use table::{City, Country, Place, Places, PostalTable, Region, zip_code};
