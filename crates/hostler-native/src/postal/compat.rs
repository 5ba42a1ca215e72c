//! The paths of the original service: `/api/zipinfo/...`, with the same fields as there. Knows no other paths.

use std::fmt::Write as _;

use hostler_config::Origin;
use hostler_lookup::postal::{Places, Point, PostalPlace, PostalTable, Region, zip_code};
use hostler_wire::Name;
use hostler_wire::Whole;

use super::dataset::{PostalDataset, PostalReply};
use super::form::quoted;
use crate::LookupRequest;
use crate::cors;
use crate::problem::{self, problem, repeated};
use crate::query::QueryString;

/// The content type and cache directives of these responses.
const TOLD: PostalReply<'_> =
    PostalReply { kind: "application/json", kept: "public, max-age=7200", varies: false };

impl PostalDataset {
    /// The response to a path after `/api/zipinfo/`.
    pub fn zipinfo(&self, request: &LookupRequest<'_>, below: &str) -> Result<Whole, Whole> {
        if let Some(refused) = problem::method(request.head.method(), &["GET", "HEAD"]) {
            return Err(refused);
        }
        let query = QueryString::of(request.head.target()).map_err(|detail| problem(400, detail))?;
        let callback = query.get("callback").filter(|_| self.settings.jsonp);
        if let Some(odd) = callback.filter(|name| !is_callback(name)) {
            let odd = repeated(odd.as_bytes());
            return Err(problem(400, format_args!("callback: {odd} is not the name of a function")));
        }
        let parts: Vec<&str> = below.split('/').collect();
        let body = match *parts {
            ["byzip", code] => self.by_zip(code),
            ["bystate", state] => self.by_state(state, None, None),
            ["bystate", state, "bycity", city] => self.by_state(state, Some(city), None),
            ["bystate", state, "bycity", city, "bycounty", county] => {
                self.by_state(state, Some(city), Some(county))
            }
            _ => Err(problem(
                404,
                "there are byzip/{code} and bystate/{state}[/bycity/{city}[/bycounty/{county}]]",
            )),
        }?;
        let Some(name) = callback else { return Ok(self.tell(request, &TOLD, body.into())) };
        let kind = "application/javascript; charset=utf-8";
        let mut whole = self.tell(request, &PostalReply { kind, ..TOLD }, jsonp(name, &body).into());
        std::sync::Arc::make_mut(&mut whole.head).fields.add(b"X-Content-Type-Options", b"nosniff");
        Ok(whole)
    }

    /// A stored response to a US code, made once. `None` if the code does not exist, or if the request needs more than
    /// this.
    pub fn at_once(&self, request: &LookupRequest<'_>, code: &[u8]) -> Option<Whole> {
        let code = std::str::from_utf8(code).ok()?;
        let zip = zip_code(code)?;
        let head = &request.head;
        let is_simple = head.method() == b"GET"
            && memchr::memchr(b'?', head.target()).is_none()
            && head.fields.first(Name::IfNoneMatch).is_none()
            && head.fields.get("if-modified-since").is_none();
        // If pages of some origins only may read it, each origin needs a head of its own.
        let is_same_for_all = self.settings.cors.iter().all(Origin::is_any);
        if !is_simple || !is_same_for_all {
            return None;
        }
        let ready = self.ready.at(zip);
        if let Some(whole) = ready.get() {
            return Some(whole.clone());
        }
        let (table, us) = self.us().ok()?;
        let place = self.data().code(table, us, code).into_iter().next()?;
        let mut body = String::with_capacity(112);
        self.record(&mut body, &place);
        let whole = Whole::new(self.head(code, &TOLD), body);
        let whole = cors::allow(&self.settings.cors, request, whole);
        Some(ready.get_or_init(|| whole).clone())
    }

    fn by_zip(&self, code: &str) -> Result<String, Whole> {
        let (table, us) = self.us()?;
        match self.data().code(table, us, code).first() {
            Some(place) => {
                let mut body = String::with_capacity(112);
                self.record(&mut body, place);
                Ok(body)
            }
            None if self.settings.compat_strings => Ok("null".to_owned()),
            None => {
                Err(problem(404, format_args!("there is no code {} in the US", repeated(code.as_bytes()))))
            }
        }
    }

    fn by_state(&self, state: &str, city: Option<&str>, county: Option<&str>) -> Result<String, Whole> {
        let (table, us) = self.us()?;
        let empty = |detail: String| match self.settings.compat_strings {
            true => Ok("[]".to_owned()),
            false => Err(problem(404, detail)),
        };
        let Some(region) = table.region(us, state) else {
            return empty(format!("there is no state {}", repeated(state.as_bytes())));
        };
        let places = match city {
            None => table.in_region(&region),
            Some(name) => match table.city(&region, name) {
                Some(city) => table.in_city(&city),
                None => return empty(no_city(&region, name)),
            },
        };
        let places = match county {
            None => places,
            Some(name) => match table.in_county(&places, name) {
                found if found.is_empty() => {
                    return empty(format!(
                        "there is no such place in a county {}",
                        repeated(name.as_bytes())
                    ));
                }
                found => found,
            },
        };
        Ok(self.list(table, &places))
    }

    fn list(&self, table: &PostalTable, places: &Places) -> String {
        let mut body = String::with_capacity(2 + places.len() * 112);
        body.push('[');
        for (at, place) in table.each(places).enumerate() {
            if at > 0 {
                body.push(',');
            }
            self.record(&mut body, &place);
        }
        body.push(']');
        body
    }

    /// One record. Clients depend on the order of its fields.
    fn record(&self, out: &mut String, place: &PostalPlace<'_>) {
        let upper =
            |text: &str| if self.settings.compat_strings { text.to_uppercase() } else { text.to_owned() };
        let text = |out: &mut String, name: &str, text: &str| {
            out.push_str(name);
            match text {
                "" => out.push_str("null"),
                text => quoted(out, &upper(text)),
            }
        };
        text(out, "{\"city\":", place.city);
        text(out, ",\"code\":", place.code);
        text(out, ",\"county\":", place.county);
        self.coordinates(out, place.point);
        text(out, ",\"state\":", place.state);
        out.push('}');
    }

    /// Writing to a string cannot fail.
    fn coordinates(&self, out: &mut String, point: Option<Point>) {
        let _ = match point {
            None => write!(out, ",\"lat\":null,\"lng\":null"),
            Some(Point { lat, lng }) if self.settings.compat_strings => {
                write!(out, ",\"lat\":\"{:+.6}\",\"lng\":\"{:+.6}\"", lat.get(), lng.get())
            }
            Some(Point { lat, lng }) => write!(out, ",\"lat\":{lat},\"lng\":{lng}"),
        };
    }
}

fn no_city(region: &Region<'_>, name: &str) -> String {
    format!("there is no city {} in {}", repeated(name.as_bytes()), region.name)
}

/// The comment in front makes sure that the bytes can only be read as a script.
fn jsonp(name: &str, body: &str) -> String {
    // JSON allows these two characters in strings, but older scripts did not.
    let body = body.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    format!("/**/{name}({body});")
}

/// `^[A-Za-z_$][\w$.]{0,63}$`
fn is_callback(name: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$');
    let mut bytes = name.bytes();
    let first = bytes.next().is_some_and(|byte| is_word(byte) && !byte.is_ascii_digit());
    first && name.len() <= 64 && bytes.all(|byte| is_word(byte) || byte == b'.')
}
