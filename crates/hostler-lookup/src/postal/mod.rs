//! The places of postal codes, the codes of a city, and the codes near a point: GeoNames' files as one table. Knows no
//! HTTP.
//!
//! `row` reads a line, `clean` corrects it, `build` makes a pack (`image`) of many rows. `table` finds places in it,
//! `tree` the nearest points, `search` the names that a typed text may become. [`PostalFile`] combines this for several
//! files.

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
pub use table::{City, Country, Places, PostalPlace, PostalTable, Region, zip_code};
