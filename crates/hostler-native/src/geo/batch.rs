//! Many addresses in one request: each gets its answer or its error. Knows no databases.

use std::borrow::Cow;

use hostler_wire::Whole;
use serde_json::Value;
use serde_json::value::RawValue;

use super::Geo;
use super::asked::FactRequest;
use super::dataset::GeoDataset;
use super::render::{many, said};
use crate::json_item;
use crate::problem::{problem, repeated};

/// The most addresses in one request.
const MOST: usize = 1000;

/// The addresses in a body: a JSON list of texts, or one address per line.
pub(super) fn items(body: &[u8]) -> Result<Vec<Cow<'_, str>>, Box<Whole>> {
    let refuse = |status, why: &str| Box::new(problem(status, why));
    let limited = |sent: usize| match sent > MOST {
        true => {
            Err(refuse(413, &format!("{sent} addresses are too many; send at most {MOST} in one request")))
        }
        false => Ok(()),
    };
    let text = std::str::from_utf8(body).map_err(|_| refuse(400, "the body is not UTF-8"))?;
    if text.trim_start().starts_with(['[', '{', '"']) {
        let items: Vec<&RawValue> = serde_json::from_str(text)
            .map_err(|why| refuse(400, &format!("the body is not a JSON list: {why}")))?;
        limited(items.len())?;
        return Ok(items.into_iter().map(text_of).collect());
    }
    let lines: Vec<_> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Cow::Borrowed).collect();
    if lines.is_empty() {
        return Err(refuse(400, "the body has no addresses; send a JSON list, or one address per line"));
    }
    limited(lines.len())?;
    Ok(lines)
}

/// The text of an item. Any other value is no address, and is repeated as JSON.
fn text_of(item: &RawValue) -> Cow<'_, str> {
    match json_item::value(item) {
        Some(Value::String(text)) => text.into(),
        Some(other) => other.to_string().into(),
        None => item.get().into(),
    }
}

/// The body of the response.
pub(super) fn body(geo: &Geo, dataset: &GeoDataset, items: &[Cow<'_, str>], asked: &FactRequest) -> String {
    let languages = asked.languages();
    let found: Vec<_> = items.iter().map(|item| geo.look(dataset, item.as_bytes())).collect();
    let told = items.iter().zip(&found).map(|(item, found)| match found {
        Ok(facts) => (Ok(said(facts, &asked.fields, &languages)), facts.at()),
        Err(why) => (Err((repeated_plain(item), why.clone())), None),
    });
    many(&told.collect::<Vec<_>>(), &asked.fields, asked.form)
}

/// The text of an item, shortened, so that long invalid items do not make the response large.
fn repeated_plain(item: &str) -> String {
    let quoted = repeated(item.as_bytes());
    match quoted.len() == item.len() + 2 {
        true => item.to_owned(),
        false => quoted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> Result<Vec<String>, u16> {
        let read = items(body.as_bytes());
        read.map(|items| items.iter().map(ToString::to_string).collect()).map_err(|whole| whole.head.status)
    }

    #[test]
    fn a_list_comes_as_json_or_as_lines() {
        let two = ["8.8.8.8", "1.1.1.1"].map(String::from).to_vec();
        assert_eq!(read(" [\"8.8.8.8\",\n\"1.1.1.1\"]"), Ok(two.clone()));
        assert_eq!(read("8.8.8.8\r\n\n  1.1.1.1\n"), Ok(two));
        assert_eq!(read("[1, null, [\"x\"]]"), Ok(["1", "null", "[\"x\"]"].map(String::from).to_vec()));
        let deep = "[".repeat(500) + &"]".repeat(500);
        assert_eq!(read(&format!("[\"8.8.8.8\", {deep}]")), Ok(vec!["8.8.8.8".into(), deep]));
    }

    #[test]
    fn a_batch_that_is_no_list_or_too_long_is_refused() {
        assert_eq!(read(""), Err(400));
        assert_eq!(read(" \n"), Err(400));
        assert_eq!(read("[]"), Ok(Vec::new()));
        assert_eq!(read("{\"ip\":\"8.8.8.8\"}"), Err(400));
        assert_eq!(read("\"8.8.8.8\""), Err(400));
        assert_eq!(read("[\"8.8.8.8\""), Err(400));
        assert_eq!(read(&"[".repeat(100_000)), Err(400));
        assert_eq!(read(&"1.1.1.1\n".repeat(1000)).map(|items| items.len()), Ok(1000));
        assert_eq!(read(&"1.1.1.1\n".repeat(1001)), Err(413));
        assert_eq!(items(b"\xff").map_err(|whole| whole.head.status).unwrap_err(), 400);
    }
}
