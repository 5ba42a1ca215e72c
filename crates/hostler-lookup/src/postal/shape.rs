//! The shapes of a country's codes, learnt from its codes. Knows no country.

use std::collections::BTreeSet;
use std::fmt;

/// A country with more shapes than this has none.
const MOST: usize = 24;

/// Shapes of codes: `0` for any digit and `A` for any letter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shapes(BTreeSet<String>);

impl Shapes {
    /// The shapes of these codes. Empty if there are too many.
    pub fn of<'a>(codes: impl Iterator<Item = &'a str>) -> Self {
        let mut shapes = BTreeSet::new();
        for code in codes {
            let shape = shape(code);
            if !shapes.contains(&shape) {
                shapes.insert(shape);
            }
            if shapes.len() > MOST {
                return Self::default();
            }
        }
        Self(shapes)
    }

    /// Reads shapes from their text form.
    pub fn read(text: &str) -> Self {
        Self(text.split('|').filter(|shape| !shape.is_empty()).map(str::to_owned).collect())
    }

    /// Whether a code has one of the shapes, without spaces and hyphens.
    pub fn fit(&self, code: &str) -> bool {
        let shape = shape(&super::fold::code(code));
        self.0.is_empty() || self.0.iter().any(|known| super::fold::code(known) == shape)
    }

    /// Each of them.
    pub fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }
}

impl fmt::Display for Shapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, shape) in self.iter().enumerate() {
            f.write_str(if at > 0 { "|" } else { "" })?;
            f.write_str(shape)?;
        }
        Ok(())
    }
}

fn shape(code: &str) -> String {
    let class = |c: char| match c {
        c if c.is_ascii_digit() => '0',
        c if c.is_alphabetic() => 'A',
        // It would split the text form.
        '|' => ' ',
        c => c,
    };
    code.chars().map(class).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_fits_if_it_has_a_known_shape() {
        let shapes = Shapes::of(["SW1A 1AA", "E1 6AN"].into_iter());
        assert_eq!(shapes.to_string(), "A0 0AA|AA0A 0AA");
        assert!(shapes.fit("ec1a1bb") && !shapes.fit("97209"));
        assert_eq!(Shapes::read(&shapes.to_string()), shapes);
    }

    #[test]
    fn codes_of_every_kind_have_no_shape() {
        let codes: Vec<String> = (1..40).map(|length| "1".repeat(length)).collect();
        let shapes = Shapes::of(codes.iter().map(String::as_str));
        assert!(shapes.fit("anything"));
    }
}
