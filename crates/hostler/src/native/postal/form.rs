//! The forms in which rows are sent: JSON, lines of JSON, CSV, GeoJSON. Knows no data.

use std::fmt::Write as _;

use super::rows::{Cell, Rows};
use crate::native::accept::by_weight;
use crate::native::problem::repeated;
use hostler_wire::Fields;

/// A form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Json,
    /// One JSON object a line.
    Lines,
    Csv,
    GeoJson,
}

impl Form {
    const NAMES: [(&'static str, Self); 4] =
        [("json", Self::Json), ("ndjson", Self::Lines), ("csv", Self::Csv), ("geojson", Self::GeoJson)];

    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Lines => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8",
            Self::GeoJson => "application/geo+json",
        }
    }

    /// What `format=` or the end of a path says.
    pub fn named(name: &str) -> Result<Self, String> {
        let found = Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, form)| *form);
        found.ok_or_else(|| {
            format!("format: {} is none of json, ndjson, csv and geojson", repeated(name.as_bytes()))
        })
    }

    /// A path without the ending that names a form.
    pub fn split(path: &str) -> (&str, Option<Self>) {
        let found = path.rsplit_once('.').and_then(|(rest, name)| Some((rest, Self::named(name).ok()?)));
        found.map_or((path, None), |(rest, form)| (rest, Some(form)))
    }

    /// What a client likes best of what there is; JSON where it likes nothing of it.
    pub fn liked(head: &Fields) -> Self {
        let of_type = |media: &[u8]| match media.to_ascii_lowercase().as_slice() {
            b"application/json" | b"application/*" | b"*/*" => Some(Self::Json),
            b"application/x-ndjson" | b"application/ndjson" | b"application/jsonl" => Some(Self::Lines),
            b"text/csv" | b"text/*" => Some(Self::Csv),
            b"application/geo+json" => Some(Self::GeoJson),
            _ => None,
        };
        by_weight(head, "accept").find_map(of_type).unwrap_or(Self::Json)
    }
}

/// Whether the rows are a list, or one thing that may have others beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    One,
    Many,
}

/// Writes rows, the wanted columns of them.
pub(super) fn write(rows: &Rows<'_>, wanted: &[usize], number: Number, form: Form) -> String {
    let mut out = String::with_capacity(64 + rows.rows.len() * wanted.len() * 16);
    match form {
        Form::Json => json(&mut out, rows, wanted, number),
        Form::Lines => rows.rows.iter().for_each(|row| {
            object(&mut out, rows, row, wanted, "");
            out.push('\n');
        }),
        Form::Csv => csv(&mut out, rows, wanted),
        Form::GeoJson => geojson(&mut out, rows, wanted),
    }
    out
}

fn json(out: &mut String, rows: &Rows<'_>, wanted: &[usize], number: Number) {
    match (number, rows.rows.split_first()) {
        (Number::One, Some((first, []))) => object(out, rows, first, wanted, ""),
        (Number::One, Some((first, others))) => {
            let mut more = ",\"others\":".to_owned();
            list(&mut more, others, |out, row| object(out, rows, row, wanted, ""));
            object(out, rows, first, wanted, &more);
        }
        _ => list(out, &rows.rows, |out, row| object(out, rows, row, wanted, "")),
    }
    out.push('\n');
}

fn list<T>(out: &mut String, items: &[T], mut write: impl FnMut(&mut String, &T)) {
    out.push('[');
    for (at, item) in items.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        write(out, item);
    }
    out.push(']');
}

/// `more` stands at the end, its comma included.
fn object(out: &mut String, rows: &Rows<'_>, row: &[Cell<'_>], wanted: &[usize], more: &str) {
    out.push('{');
    for (at, column) in wanted.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push('"');
        out.push_str(rows.columns[*column]);
        out.push_str("\":");
        value(out, &row[*column]);
    }
    out.push_str(more);
    out.push('}');
}

fn value(out: &mut String, cell: &Cell<'_>) {
    match cell {
        Cell::Text(text) => quoted(out, text),
        Cell::Owned(text) => quoted(out, text),
        Cell::Country(code) => quoted(out, &String::from_utf8_lossy(code)),
        Cell::Unknown => out.push_str("null"),
        cell => bare(out, cell),
    }
}

/// A JSON string.
pub(super) fn quoted(out: &mut String, text: &str) {
    let plain = text.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    match plain {
        true => {
            out.push('"');
            out.push_str(text);
            out.push('"');
        }
        false => out.push_str(&serde_json::Value::from(text).to_string()),
    }
}

/// As it stands where nothing is quoted. Writing to a string cannot fail.
fn bare(out: &mut String, cell: &Cell<'_>) {
    let _ = match cell {
        Cell::Text(text) => write!(out, "{text}"),
        Cell::Owned(text) => write!(out, "{text}"),
        Cell::Country(code) => write!(out, "{}", String::from_utf8_lossy(code)),
        Cell::Count(count) => write!(out, "{count}"),
        Cell::Degrees(degrees) => write!(out, "{degrees}"),
        Cell::Distance(distance) => write!(out, "{}", (distance * 1000.0).round() / 1000.0),
        Cell::Truth(truth) => write!(out, "{truth}"),
        Cell::Unknown => Ok(()),
    };
}

/// RFC 4180, the names of the columns first.
fn csv(out: &mut String, rows: &Rows<'_>, wanted: &[usize]) {
    let names: Vec<&str> = wanted.iter().map(|column| rows.columns[*column]).collect();
    out.push_str(&names.join(","));
    out.push_str("\r\n");
    let mut cell_text = String::new();
    for row in &rows.rows {
        for (at, column) in wanted.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            cell_text.clear();
            bare(&mut cell_text, &row[*column]);
            match cell_text.contains(['"', ',', '\r', '\n']) {
                true => {
                    out.push('"');
                    out.push_str(&cell_text.replace('"', "\"\""));
                    out.push('"');
                }
                false => out.push_str(&cell_text),
            }
        }
        out.push_str("\r\n");
    }
}

/// RFC 7946. What has no coordinates has no geometry.
fn geojson(out: &mut String, rows: &Rows<'_>, wanted: &[usize]) {
    let at = rows.column("lng").zip(rows.column("lat"));
    out.push_str("{\"type\":\"FeatureCollection\",\"features\":");
    list(out, &rows.rows, |out, row| {
        out.push_str("{\"type\":\"Feature\",\"geometry\":");
        match at.map(|(lng, lat)| (&row[lng], &row[lat])) {
            Some((lng @ Cell::Degrees(_), lat @ Cell::Degrees(_))) => {
                out.push_str("{\"type\":\"Point\",\"coordinates\":[");
                bare(out, lng);
                out.push(',');
                bare(out, lat);
                out.push_str("]}");
            }
            _ => out.push_str("null"),
        }
        out.push_str(",\"properties\":");
        object(out, rows, row, wanted, "");
        out.push('}');
    });
    out.push_str("}\n");
}

#[cfg(test)]
mod tests {
    use hostler_lookup::postal::Degrees;

    use super::*;

    fn rows() -> Rows<'static> {
        let mut rows = Rows::new(["city", "lat", "lng", "codes"]);
        let degrees = |number| Cell::Degrees(Degrees::new(number).unwrap());
        rows.rows.push(vec![Cell::Text("A \"b\", c"), degrees(1.5), degrees(-2.25), Cell::Count(3)]);
        rows.rows.push(vec![Cell::Unknown, Cell::Unknown, Cell::Unknown, Cell::Count(0)]);
        rows
    }

    fn written(wanted: &[usize], number: Number, form: Form) -> String {
        write(&rows(), wanted, number, form)
    }

    #[test]
    fn rows_are_json_csv_lines_and_geojson() {
        let all = [0, 1, 2, 3];
        let first = r#"{"city":"A \"b\", c","lat":1.5,"lng":-2.25,"codes":3"#;
        let second = r#"{"city":null,"lat":null,"lng":null,"codes":0}"#;
        assert_eq!(written(&all, Number::Many, Form::Json), format!("[{first}}},{second}]\n"));
        assert_eq!(written(&all, Number::One, Form::Json), format!("{first},\"others\":[{second}]}}\n"));
        assert_eq!(written(&all, Number::One, Form::Lines), format!("{first}}}\n{second}\n"));
        let csv = written(&all, Number::Many, Form::Csv);
        assert_eq!(csv, "city,lat,lng,codes\r\n\"A \"\"b\"\", c\",1.5,-2.25,3\r\n,,,0\r\n");
        let geo: serde_json::Value =
            serde_json::from_str(&written(&[0], Number::Many, Form::GeoJson)).unwrap();
        assert_eq!(geo["features"][0]["geometry"]["coordinates"], serde_json::json!([-2.25, 1.5]));
        assert_eq!(geo["features"][1]["geometry"], serde_json::Value::Null);
        assert_eq!(geo["features"][0]["properties"], serde_json::json!({ "city": "A \"b\", c" }));
    }

    #[test]
    fn the_form_is_named_by_the_path_the_query_or_what_is_liked() {
        assert_eq!(Form::split("97209.csv"), ("97209", Some(Form::Csv)));
        assert_eq!(Form::split("St. Paul"), ("St. Paul", None));
        let liked = |accept: &str| {
            let mut fields = Fields::default();
            fields.add(b"Accept", accept.as_bytes());
            Form::liked(&fields)
        };
        assert_eq!(liked("text/html, application/geo+json;q=0.5"), Form::GeoJson);
        assert_eq!(liked("image/png"), Form::Json);
        assert!(Form::named("exe").unwrap_err().starts_with("format: \"exe\" is none of"));
    }
}
