//! The instance that a request names in a header field. Knows no members.

use hostler_engine::exchange::{Exchange, Instance};
use hostler_wire::Fields;

use super::objection::RouterObjection;

/// An instance that a request names.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AskedInstance<'a> {
    id: &'a str,
    /// None: any instance of the app.
    index: Option<&'a str>,
    /// The id is that of a process, not of the application.
    process: bool,
}

impl AskedInstance<'_> {
    /// The error for an instance that does not exist.
    pub fn unknown(&self) -> RouterObjection {
        RouterObjection::UnknownInstance {
            guid: self.id.into(),
            index: self.index.unwrap_or_default().into(),
            process: self.process,
        }
    }

    pub fn is(&self, instance: &Instance) -> bool {
        let id = match self.process {
            true => instance.tags.get("process_id").map_or("", String::as_str),
            false => &instance.app,
        };
        id == self.id && self.index.is_none_or(|index| index == instance.index)
    }
}

/// The instance that the request names, if it names one.
pub(super) fn asked_instance(exchange: &Exchange) -> Result<Option<AskedInstance<'_>>, RouterObjection> {
    let fields = &exchange.head.fields;
    if let Some(value) = text(fields, "X-CF-App-Instance") {
        return app_instance(value).map(Some).ok_or(RouterObjection::AppInstance);
    }
    match text(fields, "X-CF-Process-Instance") {
        Some(value) => process_instance(value).map(Some).ok_or(RouterObjection::ProcessInstance),
        None => Ok(None),
    }
}

fn text<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    // A value that is not UTF-8 becomes `?`, which has no valid form either.
    let value = fields.get(name)?;
    Some(std::str::from_utf8(value).unwrap_or("?")).filter(|value| !value.is_empty())
}

/// `GUID:INDEX`.
fn app_instance(value: &str) -> Option<AskedInstance<'_>> {
    let (id, index) = value.split_once(':')?;
    (is_guid(id) && is_index(index)).then_some(AskedInstance { id, index: Some(index), process: false })
}

/// `GUID` or `GUID:INDEX`.
fn process_instance(value: &str) -> Option<AskedInstance<'_>> {
    let (id, index) = match value.split_once(':') {
        Some((id, index)) => (id, Some(index)),
        None => (value, None),
    };
    (is_guid(id) && index.is_none_or(is_index)).then_some(AskedInstance { id, index, process: true })
}

fn is_index(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A GUID in lower case.
fn is_guid(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte),
    };
    text.len() == 36 && text.bytes().enumerate().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUID: &str = "11111111-2222-3333-4444-555555555555";

    #[test]
    fn an_instance_is_named_by_a_guid_in_lower_case_and_a_number() {
        let asked = |index, process| Some(AskedInstance { id: GUID, index, process });
        assert_eq!(app_instance(&format!("{GUID}:0")), asked(Some("0"), false));
        assert_eq!(process_instance(&format!("{GUID}:12")), asked(Some("12"), true));
        assert_eq!(process_instance(GUID), asked(None, true));
        let upper = "AAAAAAAA-2222-3333-4444-555555555555:0";
        for bad in
            ["", ":", "x", GUID, &format!("{GUID}:"), &format!("{GUID}:x"), &format!("{GUID}:1:2"), upper]
        {
            assert_eq!(app_instance(bad), None, "{bad}");
        }
        for bad in ["", ":0", &format!("{GUID}:"), &format!("{GUID}:-1"), upper] {
            assert_eq!(process_instance(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_instance_is_known_by_its_application_or_by_its_process() {
        let tags = [("process_id".to_owned(), GUID.to_owned())].into();
        let instance = Instance { app: GUID.into(), index: "7".into(), tags, ..Instance::default() };
        for (value, known) in [(format!("{GUID}:7"), true), (format!("{GUID}:8"), false)] {
            assert_eq!(app_instance(&value).unwrap().is(&instance), known, "{value}");
            assert_eq!(process_instance(&value).unwrap().is(&instance), known, "{value}");
        }
        assert!(process_instance(GUID).unwrap().is(&instance));
        assert!(!process_instance(GUID).unwrap().is(&Instance::default()));
    }
}
