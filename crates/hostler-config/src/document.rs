//! The configuration as a tree of TOML values. It knows where each value was written. Knows no keys.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};

use super::error::{Report, SourcePlace, nearest};

/// One step into a table or a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathStep {
    /// Into a table.
    Key(String),
    /// Into a list.
    Index(usize),
}

/// The path to a value, such as `routes[0].respond.status`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyPath(pub Vec<PathStep>);

impl KeyPath {
    /// A path from keys that are joined by dots.
    pub fn of(dotted: &str) -> Self {
        Self(dotted.split('.').map(|key| PathStep::Key(key.into())).collect())
    }

    /// Whether the value may be a secret, or a text with one in place of a table.
    pub fn may_be_secret(&self) -> bool {
        let is_key = |step: &PathStep, name: &str| matches!(step, PathStep::Key(key) if key == name);
        let [first, .., last] = self.0.as_slice() else {
            return self.0.first().is_some_and(|only| is_key(only, "registrar") || is_key(only, "traces"));
        };
        // As in `pools.web.env` and `routes[0].request_headers`.
        let has_secrets = |step: &PathStep| {
            ["env", "request_headers", "response_headers"].into_iter().any(|name| is_key(step, name))
        };
        let may_have_key = |step: &PathStep| is_key(step, "endpoint") || is_key(step, "headers");
        is_key(first, "registrar")
            || (is_key(first, "traces") && self.0.get(1).is_some_and(may_have_key))
            || is_key(last, "sticky")
            || is_key(last, "secret")
            || self.0.get(2).is_some_and(has_secrets)
    }

    /// The path to this key of the table.
    pub fn key(&self, key: &str) -> Self {
        self.then(PathStep::Key(key.into()))
    }

    /// The path to one item of the list.
    pub fn index(&self, index: usize) -> Self {
        self.then(PathStep::Index(index))
    }

    fn then(&self, step: PathStep) -> Self {
        Self(self.0.iter().cloned().chain([step]).collect())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, step) in self.0.iter().enumerate() {
            match step {
                PathStep::Key(key) if position == 0 => f.write_str(key)?,
                PathStep::Key(key) => write!(f, ".{key}")?,
                PathStep::Index(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

enum ValueOrigin {
    File { key: SourcePlace, value: SourcePlace },
    Named(SourcePlace),
}

/// Values and where they were written.
pub struct Document {
    name: String,
    values: Table,
    /// An origin stays when its value is dropped. The value was still written, so there must be no error that it is missing.
    origins: BTreeMap<KeyPath, ValueOrigin>,
    /// Items that were dropped from lists, by their index in the file. Later items have moved up in `values`, but not in `origins`.
    dropped: BTreeMap<KeyPath, BTreeSet<usize>>,
}

/// A table that is written twice has keys that are written twice. Only the table is the mistake.
fn without_consequences<'a>(
    text: &'a str,
    errors: &'a [toml::de::Error],
) -> impl Iterator<Item = &'a toml::de::Error> {
    let mut table_ends = 0;
    errors.iter().filter(move |error| {
        let at = error.span().map_or(0, |span| span.start);
        if error.message() != "duplicate key" {
            return true;
        }
        let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
        let is_table = text[line..].trim_start().starts_with('[');
        if is_table {
            table_ends = text[at..].find("\n[").map_or(text.len(), |length| at + length);
        }
        is_table || at >= table_ends
    })
}

impl Document {
    /// An empty document. `name` is used in place of the name of a file.
    pub fn empty(name: &str) -> Self {
        Self { name: name.into(), values: Table::new(), origins: BTreeMap::new(), dropped: BTreeMap::new() }
    }

    /// Parses TOML. Reports every syntax error; with an error the result is `None`.
    pub fn parse(name: &str, text: &str, report: &mut Report) -> Option<Self> {
        let lines = LineIndex::new(name, text);
        let mut refuse = |error: &toml::de::Error| {
            let span = error.span().unwrap_or_default();
            let name = text.get(span.clone()).filter(|_| error.message() == "duplicate key");
            let which = name.map_or(String::new(), |name| format!(" \"{}\"", name.trim_matches('"')));
            let message = error.message().replace('\n', "; ");
            report.error(lines.place(span.start), format!("not valid TOML: {message}{which}"));
        };
        let (spans, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            without_consequences(text, &errors).for_each(&mut refuse);
            return None;
        }
        let mut document = Self::empty(name);
        document.note_table(&lines, &KeyPath::default(), spans.get_ref());
        // The second parse reads the numbers. It can still refuse one that does not fit.
        match toml::from_str(text) {
            Ok(values) => Some(Self { values, ..document }),
            Err(error) => {
                match error.span().and_then(|span| document.misfit(lines.place(span.start), text.get(span)?))
                {
                    Some((place, told)) => report.error(place, told),
                    None => refuse(&error),
                }
                None
            }
        }
    }

    /// The complaint about a whole number that is too large.
    fn misfit(&self, place: SourcePlace, written: &str) -> Option<(SourcePlace, String)> {
        let is_number = written.chars().all(|c| c.is_ascii_digit() || matches!(c, '-' | '+' | '_'));
        let is_here =
            |origin: &ValueOrigin| matches!(origin, ValueOrigin::File { value, .. } if *value == place);
        let (path, _) = self.origins.iter().find(|(_, origin)| is_here(origin)).filter(|_| is_number)?;
        let limit = if written.starts_with('-') { i64::MIN } else { i64::MAX };
        let how = if limit < 0 { "too small, the smallest" } else { "too large, the largest" };
        let number = if path.may_be_secret() { String::new() } else { format!(" {written}") };
        let told = format!("{path}: the number{number} is {how} is {limit}");
        Some((place, told))
    }

    /// The complaint about a file that is not UTF-8.
    pub fn refuse_encoding(name: &str, bytes: &[u8], valid_up_to: usize, report: &mut Report) {
        let text = String::from_utf8_lossy(&bytes[..valid_up_to]);
        let place = LineIndex::new(name, &text).place(text.len());
        report.error(place, "this is not UTF-8; save the file in this encoding".to_owned());
    }

    fn note_table(&mut self, lines: &LineIndex, path: &KeyPath, table: &DeTable<'_>) {
        for (key, value) in table {
            let here = path.key(key.get_ref());
            let origin = ValueOrigin::File {
                key: lines.place(key.span().start),
                value: lines.place(value.span().start),
            };
            self.origins.insert(here.clone(), origin);
            self.note_value(lines, &here, value);
        }
    }

    fn note_value(&mut self, lines: &LineIndex, path: &KeyPath, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => self.note_table(lines, path, table),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let here = path.index(index);
                    let place = lines.place(item.span().start);
                    self.origins.insert(here.clone(), ValueOrigin::File { key: place.clone(), value: place });
                    self.note_value(lines, &here, item);
                }
            }
            _ => {}
        }
    }

    /// Forgets all other keys. A section that is no table is forgotten, too.
    pub fn keep(&mut self, section: &str, keys: &[&str]) {
        self.values.retain(|name, value| name == section && value.is_table());
        if let Some(Value::Table(table)) = self.values.get_mut(section) {
            table.retain(|key, _| keys.contains(&key));
        }
    }

    /// Sets a value from the flag or variable `name`. Returns false if the path has no table for it. A `true` on the way becomes an empty
    /// table.
    pub fn set(&mut self, path: &KeyPath, value: Value, name: &str) -> bool {
        let Some((PathStep::Key(last), tables)) = path.0.split_last() else { return false };
        let mut table = &mut self.values;
        for step in tables {
            let PathStep::Key(key) = step else { return false };
            let below = table.entry(key).or_insert_with(|| Value::Table(Table::new()));
            // The feature is on already; now it gets a setting.
            if *below == Value::Boolean(true) {
                *below = Value::Table(Table::new());
            }
            let Value::Table(below) = below else { return false };
            table = below;
        }
        table.insert(last.clone(), value.clone());
        self.origins.retain(|written, _| !written.0.starts_with(&path.0));
        self.note_name(path.clone(), &value, name);
        true
    }

    /// Notes that the value at this path, and all that is in it, comes from the flag or variable `name`.
    fn note_name(&mut self, path: KeyPath, value: &Value, name: &str) {
        match value {
            Value::Table(table) => {
                table.iter().for_each(|(key, below)| self.note_name(path.key(key), below, name));
            }
            Value::Array(list) => {
                list.iter().enumerate().for_each(|(at, below)| self.note_name(path.index(at), below, name));
            }
            _ => {}
        }
        self.origins.insert(path, ValueOrigin::Named(SourcePlace::Named(name.into())));
    }

    /// Removes a value that was reported as an error, so that the rest can be checked. Returns false if there is no such value.
    pub fn drop_value(&mut self, path: &KeyPath) -> bool {
        let original = self.original(path);
        let Some((last, parents)) = path.0.split_last() else { return false };
        let Some(parent) = self.value_mut(parents) else { return false };
        match (parent, last) {
            (Holder::Table(table), PathStep::Key(key)) => table.remove(key).is_some(),
            (Holder::List(list), PathStep::Index(index)) if *index < list.len() => {
                list.remove(*index);
                if let Some((PathStep::Index(index), parents)) = original.0.split_last() {
                    self.dropped.entry(KeyPath(parents.to_vec())).or_default().insert(*index);
                }
                true
            }
            _ => false,
        }
    }

    fn value_mut(&mut self, path: &[PathStep]) -> Option<Holder<'_>> {
        let mut holder = Holder::Table(&mut self.values);
        for step in path {
            let value = match (holder, step) {
                (Holder::Table(table), PathStep::Key(key)) => table.get_mut(key)?,
                (Holder::List(list), PathStep::Index(index)) => list.get_mut(*index)?,
                _ => return None,
            };
            holder = match value {
                Value::Table(table) => Holder::Table(table),
                Value::Array(list) => Holder::List(list),
                _ => return None,
            };
        }
        Some(holder)
    }

    /// The tree.
    pub fn values(&self) -> &Table {
        &self.values
    }

    /// Whether the configuration has a value here, valid or not.
    pub fn is_written(&self, path: &KeyPath) -> bool {
        let original = self.original(path);
        self.origins
            .range(original.clone()..)
            .next()
            .is_some_and(|(first, _)| first.0.starts_with(&original.0))
    }

    /// Whether a key at the top of the file is probably meant to be this section: `[pool.web]` for `pools`.
    pub fn has_misspelt(&self, section: &str) -> bool {
        self.origins.keys().any(|path| {
            matches!(&*path.0, [PathStep::Key(key)] if key != section && nearest(key, [section]).is_some())
        })
    }

    /// The path in the file: list indexes count dropped items, too.
    pub fn original(&self, path: &KeyPath) -> KeyPath {
        let mut original = KeyPath::default();
        for step in &path.0 {
            let step = match (step, self.dropped.get(&original)) {
                (PathStep::Index(index), Some(dropped)) => {
                    let mut kept = (0..).filter(|index| !dropped.contains(index));
                    PathStep::Index(kept.nth(*index).unwrap_or(*index))
                }
                (step, _) => step.clone(),
            };
            original.0.push(step);
        }
        original
    }

    /// The place of the key.
    pub fn place_of_key(&self, path: &KeyPath) -> SourcePlace {
        self.place(path, |key, _| key)
    }

    /// The place of the value, or of the nearest table around it.
    pub fn place_of_value(&self, path: &KeyPath) -> SourcePlace {
        self.place(path, |_, value| value)
    }

    /// A table that only flags have made has the place of its first key. A value that was not written has the place where it would be.
    fn place(
        &self,
        path: &KeyPath,
        choose: for<'a> fn(&'a SourcePlace, &'a SourcePlace) -> &'a SourcePlace,
    ) -> SourcePlace {
        let original = self.original(path);
        let inside = || {
            let (first, origin) = self.origins.range(original.clone()..).next()?;
            (!original.0.is_empty() && first.0.starts_with(&original.0)).then_some(origin)
        };
        let around = || {
            let outwards = (1..original.0.len()).rev();
            outwards
                .map(|length| KeyPath(original.0[..length].to_vec()))
                .find_map(|outer| self.origins.get(&outer))
        };
        match self.origins.get(&original).or_else(inside).or_else(around) {
            Some(ValueOrigin::File { key, value }) => choose(key, value).clone(),
            Some(ValueOrigin::Named(place)) => place.clone(),
            None => SourcePlace::File(self.name.clone()),
        }
    }
}

enum Holder<'a> {
    Table(&'a mut Table),
    List(&'a mut Vec<Value>),
}

struct LineIndex<'a> {
    name: &'a str,
    text: &'a str,
    /// Where each line begins. Counted once: a file with thousands of routes has tens of thousands of places.
    starts: Vec<usize>,
}

impl<'a> LineIndex<'a> {
    fn new(name: &'a str, text: &'a str) -> Self {
        let starts = text.match_indices('\n').map(|(at, _)| at + 1);
        Self { name, text, starts: std::iter::once(0).chain(starts).collect() }
    }

    fn place(&self, offset: usize) -> SourcePlace {
        let offset = if self.text.is_char_boundary(offset) { offset } else { self.text.len() };
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = line.checked_sub(1).and_then(|above| self.starts.get(above)).copied().unwrap_or(0);
        let column = self.text.get(start..offset).map_or(0, |before| before.chars().count()) + 1;
        SourcePlace::Line(self.name.into(), line, column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_has_the_line_and_the_column_in_characters() {
        let lines = LineIndex::new("a.toml", "one\n\ngrün = 1\n");
        let place = |offset| lines.place(offset);
        let at = |line, column| SourcePlace::Line("a.toml".into(), line, column);
        assert_eq!(place(0), at(1, 1));
        assert_eq!(place(3), at(1, 4));
        assert_eq!(place(4), at(2, 1));
        assert_eq!(place(5), at(3, 1));
        assert_eq!(place(9), at(3, 4));
        assert_eq!(place(14), at(3, 9));
        assert_eq!(place(99), at(4, 1));
        // In the middle of a letter.
        assert_eq!(place(8), at(4, 1));
        assert_eq!(LineIndex::new("b", "").place(0), SourcePlace::Line("b".into(), 1, 1));
    }
}
