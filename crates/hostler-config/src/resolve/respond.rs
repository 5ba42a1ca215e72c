//! The meaning of `respond`: a response that is the same for every request. Knows no requests.

use http::header::{self, HeaderValue};
use http::{HeaderMap, StatusCode};

use super::Resolver;
use super::changes::own_field;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::{Body, LoadedFile, Respond};
use crate::value::TextOr;

impl Resolver<'_> {
    /// The meaning of a route's `respond`. Reports errors.
    pub(super) fn respond(&mut self, path: &KeyPath, written: &TextOr<file::Respond>) -> Option<Respond> {
        let written = match written {
            TextOr::Word(body) => &file::Respond { body: body.clone(), ..file::Respond::default() },
            TextOr::Value(table) => table,
        };
        let status = u16::try_from(written.status.0).ok().and_then(|code| StatusCode::from_u16(code).ok())?;
        let bodiless =
            [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if bodiless && !written.body.is_empty() {
            self.refuse(&path.key("body"), format!("a response with status {} has no body", status.as_u16()));
        }
        let body = match &written.file {
            Some(name) => Body::File(self.file_to_send(path, name, status, bodiless)?),
            None => Body::Text(written.body.clone()),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &written.headers {
            let here = path.key("headers").key(name);
            match own_field(name, value) {
                Ok((name, value)) if headers.contains_key(&name) => {
                    self.refuse(&here, format!("{name} is set twice ({value:?})"));
                }
                Ok((name, value)) => {
                    headers.insert(name, value);
                }
                Err(why) => self.refuse(&here, why),
            }
        }
        if !bodiless {
            let kind = match &body {
                Body::Text(_) => "text/plain; charset=utf-8",
                Body::File(file) => &file.content_type,
            };
            let kind = HeaderValue::from_str(kind).expect("invariant: a media type is ASCII");
            headers.entry(header::CONTENT_TYPE).or_insert(kind);
        }
        Some(Respond { status, headers, body })
    }

    fn file_to_send(
        &mut self,
        respond: &KeyPath,
        name: &str,
        status: StatusCode,
        bodiless: bool,
    ) -> Option<LoadedFile> {
        let path = respond.key("file");
        if bodiless {
            self.refuse(&path, format!("a response with status {} has no body", status.as_u16()));
        }
        if self.document.is_written(&respond.key("body")) {
            self.refuse(&path, "cannot be set together with body; remove one of them");
        }
        self.loaded_file(&path, name)
    }
}
