//! The links of a `Link` field (RFC 8288 section 3), read strictly. Knows no relations.

use crate::grammar::TOKEN;

/// One link, such as `</app.css>; rel=preload; as=style`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WebLink<'a> {
    /// The link as sent, without the commas and the white space around it. Only printable ASCII and tabs.
    pub text: &'a [u8],
    /// The URI reference between `<` and `>`.
    pub target: &'a [u8],
    parameters: &'a [u8],
}

/// What follows is no link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BadLink;

/// A parameter: its name, and its value without quotation marks. Empty if it has none.
type Parameter<'a> = (&'a [u8], &'a [u8]);

impl<'a> WebLink<'a> {
    /// The only link in this text. None if there is not exactly one.
    pub fn only(text: &'a [u8]) -> Option<Self> {
        let mut links = links(text);
        let only = links.next()?.ok()?;
        links.next().is_none().then_some(only)
    }

    /// The parameters in their order. A backslash in a quoted value stays.
    pub fn parameters(&self) -> impl Iterator<Item = Parameter<'a>> {
        let (text, mut at) = (self.parameters, 0);
        std::iter::from_fn(move || {
            at = after_space(text, at);
            let (parameter, end) = text.get(at).and_then(|_| parameter(text, at + 1))?;
            at = end;
            Some(parameter)
        })
        .filter(|(name, _)| !name.is_empty())
    }

    /// The value of the first parameter with this name, which is in lower case.
    pub fn parameter(&self, name: &str) -> Option<&'a [u8]> {
        self.parameters()
            .find(|(other, _)| other.eq_ignore_ascii_case(name.as_bytes()))
            .map(|(_, value)| value)
    }

    /// Its relation types: the words of the first `rel` (RFC 8288 section 3.3).
    pub fn relations(&self) -> impl Iterator<Item = &'a [u8]> {
        let words = self.parameter("rel").unwrap_or_default().split(|byte| is_space(*byte));
        words.filter(|word| !word.is_empty())
    }
}

/// The links of a field value. Ends with the first part that is no link.
pub fn links(value: &[u8]) -> impl Iterator<Item = Result<WebLink<'_>, BadLink>> {
    let mut rest = value;
    std::iter::from_fn(move || {
        let blank = rest.iter().take_while(|byte| is_space(**byte) || **byte == b',').count();
        rest = &rest[blank..];
        if rest.is_empty() {
            return None;
        }
        let Some((link, end)) = first(rest) else {
            rest = &[];
            return Some(Err(BadLink));
        };
        rest = &rest[end..];
        Some(Ok(link))
    })
}

/// The link at the beginning, and where the comma behind it is.
fn first(text: &[u8]) -> Option<(WebLink<'_>, usize)> {
    let inside = text.strip_prefix(b"<")?;
    let length = inside.iter().take_while(|byte| byte.is_ascii_graphic() && !b"<>\"".contains(byte)).count();
    if inside.get(length) != Some(&b'>') {
        return None;
    }
    let begin = length + 2;
    let mut end = begin;
    let mut at = after_space(text, end);
    while text.get(at) == Some(&b';') {
        (_, end) = parameter(text, at + 1)?;
        at = after_space(text, end);
    }
    let is_over = matches!(text.get(at), None | Some(b','));
    let link = WebLink { text: &text[..end], target: &inside[..length], parameters: &text[begin..end] };
    is_over.then_some((link, at))
}

/// The parameter behind a semicolon, and its end. Empty parameters are allowed.
fn parameter(text: &[u8], at: usize) -> Option<(Parameter<'_>, usize)> {
    let start = after_space(text, at);
    let name_end = start + text[start..].iter().take_while(|byte| TOKEN[usize::from(**byte)]).count();
    let name = &text[start..name_end];
    if name.is_empty() {
        return Some(((name, &[]), at));
    }
    let equals = after_space(text, name_end);
    if text.get(equals) != Some(&b'=') {
        return Some(((name, &[]), name_end));
    }
    let start = after_space(text, equals + 1);
    if text.get(start) != Some(&b'"') {
        // `type=font/woff2` is common, although a token has no slash.
        let end = start + text[start..].iter().take_while(|byte| is_unquoted(**byte)).count();
        return Some(((name, &text[start..end]), end));
    }
    let mut end = start + 1;
    loop {
        match text.get(end)? {
            b'"' => return Some(((name, &text[start + 1..end]), end + 1)),
            b'\\' => {
                text.get(end + 1).filter(|byte| is_text(**byte))?;
                end += 2;
            }
            byte if is_text(*byte) => end += 1,
            _ => return None,
        }
    }
}

fn after_space(text: &[u8], at: usize) -> usize {
    at + text[at..].iter().take_while(|byte| is_space(**byte)).count()
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn is_text(byte: u8) -> bool {
    byte.is_ascii_graphic() || is_space(byte)
}

fn is_unquoted(byte: u8) -> bool {
    byte.is_ascii_graphic() && !b";,\"<>".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(value: &str) -> Vec<Option<&str>> {
        links(value.as_bytes()).map(|link| link.ok().map(|link| str::from_utf8(link.text).unwrap())).collect()
    }

    #[test]
    fn each_link_of_a_field_is_read_with_its_parameters() {
        let value = "</a.css>; rel=preload; as=style ,, <https://cdn.test/f.woff2>;rel=\"preload\" ; as = font;type=font/woff2;crossorigin,\t<>";
        let all: Vec<_> = links(value.as_bytes()).collect::<Result<_, _>>().unwrap();
        let targets: Vec<_> = all.iter().map(|link| str::from_utf8(link.target).unwrap()).collect();
        assert_eq!(targets, ["/a.css", "https://cdn.test/f.woff2", ""]);
        assert_eq!(all[0].text, b"</a.css>; rel=preload; as=style");
        let parameters: Vec<_> = all[1]
            .parameters()
            .map(|(name, value)| [name, value].map(|part| str::from_utf8(part).unwrap()))
            .collect();
        assert_eq!(
            parameters,
            [["rel", "preload"], ["as", "font"], ["type", "font/woff2"], ["crossorigin", ""]]
        );
        assert_eq!((all[1].parameter("as"), all[1].parameter("media")), (Some(&b"font"[..]), None));
        assert_eq!(all[2].relations().count(), 0);
    }

    #[test]
    fn a_comma_or_a_semicolon_inside_a_target_or_quotes_ends_nothing() {
        let value = r#"</a,b;c>; rel=preload; title="a, <b>; \"c\"", </d>; rel="preconnect  dns-prefetch""#;
        let all: Vec<_> = links(value.as_bytes()).collect::<Result<_, _>>().unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].target, b"/a,b;c");
        assert_eq!(all[0].parameter("title"), Some(&br#"a, <b>; \"c\""#[..]));
        assert_eq!(all[1].relations().collect::<Vec<_>>(), [&b"preconnect"[..], b"dns-prefetch"]);
    }

    #[test]
    fn only_the_first_rel_counts_and_names_have_any_case() {
        let link = WebLink::only(b"</a>; REL=preload; rel=preconnect").unwrap();
        assert_eq!(link.relations().collect::<Vec<_>>(), [b"preload"]);
    }

    #[test]
    fn reading_ends_at_the_first_part_that_is_no_link() {
        for bad in [
            "a.css",
            "<a.css",
            "<a css>",
            "<a\"b>",
            "</a>; rel=\"preload",
            "</a>; rel=\"a\\",
            "</a> rel=preload",
            "</a>; rel=preload; as=\"style\" x",
            "</a>; rel=pre<load",
            "</\u{e4}>",
            "</a>; title=\"\u{e4}\"",
            "</a>; title=\"a\r\nX: 1\"",
            "</a>; rel=a\r\nX: 1",
            "</a\0>",
        ] {
            assert_eq!(read(bad), [None], "{bad:?}");
            assert_eq!(
                read(&format!("</ok>; rel=preload, {bad}, </lost>")),
                [Some("</ok>; rel=preload"), None]
            );
        }
        assert_eq!(read(" , ,"), [None::<&str>; 0]);
        assert_eq!(read("</a>;, </b>;;rel=x;"), [Some("</a>;"), Some("</b>;;rel=x;")]);
    }

    #[test]
    fn a_text_of_two_links_is_not_one() {
        assert!(WebLink::only(b" </a>; rel=preload ").is_some());
        for not_one in ["", "</a>, </b>", "</a>, b", "a"] {
            assert_eq!(WebLink::only(not_one.as_bytes()), None, "{not_one:?}");
        }
    }
}
