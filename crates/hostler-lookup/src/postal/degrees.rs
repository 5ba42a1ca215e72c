//! Coordinates as GeoNames writes them, exact to the last digit. Knows no places.

use std::fmt;

/// A latitude or longitude in steps of 1e-7 degrees. It is exact; a float would print other digits than the file has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Degrees(i32);

const STEPS: i32 = 10_000_000;

impl Degrees {
    /// An angle from steps. `None` if it is not within ±180 degrees.
    pub fn from_steps(steps: i32) -> Option<Self> {
        (steps.unsigned_abs() <= 180 * STEPS.unsigned_abs()).then_some(Self(steps))
    }

    /// An angle from a number of degrees. `None` if it is not within ±180 degrees.
    pub fn new(degrees: f64) -> Option<Self> {
        // The comparison is false for NaN.
        (degrees.abs() <= 180.0).then(|| Self((degrees * f64::from(STEPS)).round() as i32))
    }

    /// The steps of 1e-7 degrees.
    pub fn steps(self) -> i32 {
        self.0
    }

    /// The number of degrees.
    pub fn get(self) -> f64 {
        f64::from(self.0) / f64::from(STEPS)
    }
}

impl fmt::Display for Degrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, mut rest) = (self.0 / STEPS, (self.0 % STEPS).unsigned_abs());
        if self.0 < 0 {
            f.write_str("-")?;
        }
        write!(f, "{}", whole.unsigned_abs())?;
        if rest == 0 {
            return Ok(());
        }
        let mut digits = 7;
        while rest.is_multiple_of(10) {
            rest /= 10;
            digits -= 1;
        }
        write!(f, ".{rest:0digits$}")
    }
}

/// A point on the surface of the earth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// The latitude. North is positive.
    pub lat: Degrees,
    /// The longitude. East is positive.
    pub lng: Degrees,
}

impl Point {
    /// A point from degrees. `None` if they are out of range.
    pub fn new(lat: f64, lng: f64) -> Option<Self> {
        let (lat, lng) = (Degrees::new(lat)?, Degrees::new(lng)?);
        (lat.get().abs() <= 90.0).then_some(Self { lat, lng })
    }

    /// The point on the unit sphere. There, the poles and the date line are not special.
    pub fn vector(self) -> [f32; 3] {
        let (lat, lng) = (self.lat.get().to_radians(), self.lng.get().to_radians());
        [lat.cos() * lng.cos(), lat.cos() * lng.sin(), lat.sin()].map(|part| part as f32)
    }

    /// The distance along the surface in kilometres (haversine).
    pub fn distance_km(self, other: Self) -> f64 {
        let (a, b) = (self.lat.get().to_radians(), other.lat.get().to_radians());
        let east = (other.lng.get() - self.lng.get()).to_radians();
        let half = ((b - a) / 2.0).sin().powi(2) + a.cos() * b.cos() * (east / 2.0).sin().powi(2);
        2.0 * EARTH_KM * half.sqrt().min(1.0).asin()
    }
}

/// The mean radius of the earth in kilometres.
pub const EARTH_KM: f64 = 6371.0088;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_coordinate_keeps_its_digits() {
        for text in ["45.527", "-122.6854", "0.5", "-0.0001", "7", "-180", "169.2590123"] {
            assert_eq!(Degrees::new(text.parse().unwrap()).unwrap().to_string(), text);
        }
    }

    #[test]
    fn an_invalid_angle_makes_no_point() {
        assert_eq!(Degrees::new(f64::NAN), None);
        assert_eq!(Degrees::new(180.1), None);
        assert_eq!(Point::new(90.5, 0.0), None);
        assert_eq!(Point::new(f64::INFINITY, 0.0), None);
    }

    #[test]
    fn the_distance_from_portland_to_new_york_is_right() {
        let portland = Point::new(45.527, -122.6854).unwrap();
        let new_york = Point::new(40.7506, -73.9971).unwrap();
        assert!((portland.distance_km(new_york) - 3930.0).abs() < 20.0);
        assert!(portland.distance_km(portland).abs() < 1e-9);
    }
}
