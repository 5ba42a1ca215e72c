//! Writes rows in the formats for clients. Knows no data.

use std::fmt::Write as _;

use super::rows::{Cell, Rows};
use crate::form::{AnswerFormat, csv_cell, text_line, xml_text};

/// Whether the rows are a list, or one result with further results beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    One,
    Many,
}

/// Writes the wanted columns of the rows.
pub(super) fn write(rows: &Rows<'_>, wanted: &[usize], number: Number, form: AnswerFormat) -> String {
    let mut out = String::with_capacity(64 + rows.rows.len() * wanted.len() * 16);
    match form {
        AnswerFormat::Json => json(&mut out, rows, wanted, number),
        AnswerFormat::Lines => rows.rows.iter().for_each(|row| {
            object(&mut out, rows, row, wanted, "");
            out.push('\n');
        }),
        AnswerFormat::Csv => csv(&mut out, rows, wanted),
        AnswerFormat::GeoJson => geojson(&mut out, rows, wanted),
        AnswerFormat::Xml => xml(&mut out, rows, wanted),
        AnswerFormat::Text => text(&mut out, rows, wanted),
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

/// One JSON object. `more` is added at its end and includes its comma.
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

/// The value where no quotes are needed. Writing to a string cannot fail.
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

/// CSV (RFC 4180), with the names of the columns first.
fn csv(out: &mut String, rows: &Rows<'_>, wanted: &[usize]) {
    let names: Vec<&str> = wanted.iter().map(|column| rows.columns[*column]).collect();
    out.push_str(&names.join(","));
    out.push_str("\r\n");
    for row in &rows.rows {
        for (at, column) in wanted.iter().enumerate() {
            if at > 0 {
                out.push(',');
            }
            out.push_str(&csv_cell(&plain(&row[*column])));
        }
        out.push_str("\r\n");
    }
}

fn plain(cell: &Cell<'_>) -> String {
    let mut text = String::new();
    bare(&mut text, cell);
    text
}

/// Always a list, even with one row. Unknown values are empty.
fn xml(out: &mut String, rows: &Rows<'_>, wanted: &[usize]) {
    out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<postal>\n");
    for row in &rows.rows {
        out.push_str("<item>\n");
        for column in wanted {
            let (name, text) = (rows.columns[*column], xml_text(&plain(&row[*column])));
            // Writing to a string cannot fail.
            let _ = writeln!(out, "<{name}>{text}</{name}>");
        }
        out.push_str("</item>\n");
    }
    out.push_str("</postal>\n");
}

/// Some lines for each row, with an empty line between two rows.
fn text(out: &mut String, rows: &Rows<'_>, wanted: &[usize]) {
    for (at, row) in rows.rows.iter().enumerate() {
        if at > 0 {
            out.push('\n');
        }
        wanted
            .iter()
            .for_each(|column| out.push_str(&text_line(rows.columns[*column], &plain(&row[*column]))));
    }
}

/// GeoJSON (RFC 7946). A row without coordinates has no geometry.
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

    fn written(wanted: &[usize], number: Number, form: AnswerFormat) -> String {
        write(&rows(), wanted, number, form)
    }

    #[test]
    fn rows_are_json_csv_lines_and_geojson() {
        let all = [0, 1, 2, 3];
        let first = r#"{"city":"A \"b\", c","lat":1.5,"lng":-2.25,"codes":3"#;
        let second = r#"{"city":null,"lat":null,"lng":null,"codes":0}"#;
        assert_eq!(written(&all, Number::Many, AnswerFormat::Json), format!("[{first}}},{second}]\n"));
        assert_eq!(
            written(&all, Number::One, AnswerFormat::Json),
            format!("{first},\"others\":[{second}]}}\n")
        );
        assert_eq!(written(&all, Number::One, AnswerFormat::Lines), format!("{first}}}\n{second}\n"));
        let csv = written(&all, Number::Many, AnswerFormat::Csv);
        assert_eq!(csv, "city,lat,lng,codes\r\n\"A \"\"b\"\", c\",1.5,-2.25,3\r\n,,,0\r\n");
        let geo: serde_json::Value =
            serde_json::from_str(&written(&[0], Number::Many, AnswerFormat::GeoJson)).unwrap();
        assert_eq!(geo["features"][0]["geometry"]["coordinates"], serde_json::json!([-2.25, 1.5]));
        assert_eq!(geo["features"][1]["geometry"], serde_json::Value::Null);
        assert_eq!(geo["features"][0]["properties"], serde_json::json!({ "city": "A \"b\", c" }));
    }

    #[test]
    fn rows_are_lists_in_xml_and_blocks_of_lines_in_text() {
        let xml = written(&[0, 3], Number::One, AnswerFormat::Xml);
        let item =
            |city: &str, codes: u8| format!("<item>\n<city>{city}</city>\n<codes>{codes}</codes>\n</item>\n");
        let expected = format!("<postal>\n{}{}</postal>\n", item("A \"b\", c", 3), item("", 0));
        assert_eq!(xml.split_once("?>\n").unwrap().1, expected);
        let text = written(&[0, 1], Number::Many, AnswerFormat::Text);
        assert_eq!(text, "city: A \"b\", c\nlat: 1.5\n\ncity: \nlat: \n");
    }
}
