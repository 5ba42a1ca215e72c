//! What `respond` means: an answer that is the same for everybody. Knows no requests.

use http::header::{self, HeaderName, HeaderValue};
use http::{HeaderMap, StatusCode};

use super::Resolver;
use crate::document::KeyPath;
use crate::file;
use crate::resolved::{Body, LoadedFile, Respond};
use crate::value::TextOr;

impl Resolver<'_> {
    /// The meaning of a route's `respond`; reports what is wrong with it.
    pub(super) fn respond(&mut self, path: &KeyPath, written: &TextOr<file::Respond>) -> Option<Respond> {
        let written = match written {
            TextOr::Text(body) => &file::Respond { body: body.clone(), ..file::Respond::default() },
            TextOr::Table(table) => table,
        };
        let status = u16::try_from(written.status.0).ok().and_then(|code| StatusCode::from_u16(code).ok())?;
        let bodiless =
            [StatusCode::NO_CONTENT, StatusCode::RESET_CONTENT, StatusCode::NOT_MODIFIED].contains(&status);
        if bodiless && !written.body.is_empty() {
            self.refuse(&path.key("body"), format!("an answer with status {} has no body", status.as_u16()));
        }
        let body = match &written.file {
            Some(name) => Body::File(self.file_to_send(path, name, status, bodiless)?),
            None => Body::Text(written.body.clone()),
        };
        let mut headers = HeaderMap::new();
        for (name, value) in &written.headers {
            let here = path.key("headers").key(name);
            match header_field(name, value) {
                Ok((name, value)) if headers.contains_key(&name) => {
                    self.refuse(&here, format!("{name} is there twice ({value:?})"));
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
            self.refuse(&path, format!("an answer with status {} has no body", status.as_u16()));
        }
        if self.document.is_written(&respond.key("body")) {
            self.refuse(&path, "there is a body already; write one of the two");
        }
        self.loaded_file(&path, name)
    }
}

fn header_field(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let framing =
        [header::CONTENT_LENGTH, header::TRANSFER_ENCODING, header::CONNECTION, header::TE, header::TRAILER];
    let name: HeaderName = name.parse().map_err(|_| format!("{name:?} is not the name of a header field"))?;
    let value =
        HeaderValue::from_str(value).map_err(|_| format!("{value:?} cannot stand in a header field"))?;
    match framing.contains(&name) || name == header::UPGRADE || name == "keep-alive" {
        true => Err("is set by the server, as it frames the message".into()),
        false => Ok((name, value)),
    }
}
