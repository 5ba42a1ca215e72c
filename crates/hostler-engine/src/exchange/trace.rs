//! The trace context of a request by W3C Trace Context: continued from `traceparent`, or begun. Knows no spans and no collector.

use hostler_wire::{Fields, write_hex};
use tokio::time::Instant;

use super::clock;

/// The field with the context.
pub const TRACEPARENT: &str = "traceparent";
/// The field with what vendors add. It is only valid together with a valid `traceparent`.
pub const TRACESTATE: &str = "tracestate";
/// The length of a `traceparent` of version 00: `00-` trace id `-` parent id `-` flags.
const LENGTH: usize = 55;

/// The trace that a request belongs to, and the ids of Hostler's own spans in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: [u8; 16],
    /// The client's span. None: the trace begins here.
    pub parent: Option<[u8; 8]>,
    /// The span of the request.
    pub server_span: [u8; 8],
    /// The span of the call to the worker. The worker's spans have it as their parent.
    pub client_span: [u8; 8],
    /// The trace is recorded, however the request ends.
    pub is_sampled: bool,
    /// The client's `tracestate` is passed on to the worker. Computed once, because the field may have many lines, and each line is asked
    /// about.
    pub passes_state: bool,
    /// When the request was at the cache. Empty on a route without one.
    pub cache: CacheTimes,
    /// The trace id as text, for the log.
    text: Box<str>,
}

/// A part of what the cache does for a request, before a member is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheStep {
    /// All of it.
    Whole,
    /// The wait for the answer that another request fetches.
    Flight,
    /// The question to memcached.
    Memcached,
}

/// When each step began and ended, by the exact clock. If a step came more than once, from the first begin to the last end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheTimes([Option<(Instant, Instant)>; 3]);

impl CacheTimes {
    /// None: the request did not take this step.
    pub fn of(&self, step: CacheStep) -> Option<(Instant, Instant)> {
        self.0[step as usize]
    }

    fn note(&mut self, step: CacheStep, since: Instant) {
        let known = &mut self.0[step as usize];
        *known = Some((known.map_or(since, |(first, _)| first), clock::exact_now()));
    }
}

impl TraceContext {
    /// Continues the client's trace, or begins one. `sample`: one of so many requests is sampled, 0: none.
    pub fn of(fields: &Fields, sample: u32, parent_based: bool) -> Self {
        let mut lines = fields.values(TRACEPARENT);
        let given = lines.next().filter(|_| lines.next().is_none()).and_then(parsed);
        let by_chance = || sample > 0 && fastrand::u32(..sample) == 0;
        let (trace_id, parent, is_sampled) = match given {
            Some((id, parent, flag)) => (id, Some(parent), if parent_based { flag } else { by_chance() }),
            None => (fastrand::u128(1..).to_be_bytes(), None, by_chance()),
        };
        let mut text = String::with_capacity(32);
        write_hex(&mut text, &trace_id);
        let (server_span, client_span) = (span_id(), span_id());
        let passes_state = parent.is_some() && trace_state_of(fields).is_some();
        let (cache, text) = (CacheTimes::default(), text.into());
        Self { trace_id, parent, server_span, client_span, is_sampled, passes_state, cache, text }
    }

    /// The trace id in lower case hexadecimal digits.
    pub fn id(&self) -> &str {
        &self.text
    }

    /// The value of `traceparent` for the worker.
    pub fn for_member(&self) -> String {
        let mut value = String::with_capacity(LENGTH);
        value.push_str("00-");
        value.push_str(&self.text);
        value.push('-');
        write_hex(&mut value, &self.client_span);
        value.push_str(if self.is_sampled { "-01" } else { "-00" });
        value
    }
}

/// When a step begins, by the exact clock. None while Hostler makes no traces: then the clock is not read.
pub fn step_begins(trace: Option<&TraceContext>) -> Option<Instant> {
    trace.map(|_| clock::exact_now())
}

/// The step that began then has ended.
pub fn step_ends(trace: Option<&mut TraceContext>, step: CacheStep, since: Option<Instant>) {
    if let (Some(trace), Some(since)) = (trace, since) {
        trace.cache.note(step, since);
    }
}

/// A new id of a span. An id of zeros is not valid.
pub fn span_id() -> [u8; 8] {
    fastrand::u64(1..).to_be_bytes()
}

/// Trace id, parent id and the sampled flag. None if the value is not valid: then a new trace begins.
fn parsed(value: &[u8]) -> Option<([u8; 16], [u8; 8], bool)> {
    let (first, rest) = value.split_at_checked(LENGTH)?;
    let [version] = hex(&first[..2])?;
    // A later version may have more at its end. Version ff is not allowed.
    let has_right_end = rest.is_empty() || (version > 0 && rest[0] == b'-');
    let has_dashes = [2, 35, 52].iter().all(|at| first[*at] == b'-');
    if version == 0xff || !has_right_end || !has_dashes {
        return None;
    }
    let (trace, parent) = (hex(&first[3..35])?, hex(&first[36..52])?);
    let [flags] = hex(&first[53..])?;
    (trace != [0; 16] && parent != [0; 8]).then_some((trace, parent, flags & 1 == 1))
}

/// Bytes from lower case digits. The specification allows no upper case.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

/// The `tracestate` of a head, of all its lines. `None` if there is none, or if a tracing system cannot read it: the trace goes on without it.
pub fn trace_state_of(fields: &Fields) -> Option<String> {
    let lines: Result<Vec<_>, _> = fields.values(TRACESTATE).map(std::str::from_utf8).collect();
    let state = lines.ok()?.join(",");
    is_trace_state(&state).then_some(state).filter(|state| !state.is_empty())
}

/// Whether it is a list of at most 32 entries with a key and a value each, by W3C Trace Context.
fn is_trace_state(state: &str) -> bool {
    let is_key = |key: &str| {
        let known = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-*/@".contains(&byte);
        (1..=256).contains(&key.len())
            && key.bytes().all(known)
            && !key.starts_with(['_', '-', '*', '/', '@'])
    };
    let is_value = |value: &str| {
        let known = |byte: u8| matches!(byte, b' '..=b'~') && byte != b',' && byte != b'=';
        (1..=256).contains(&value.len()) && value.bytes().all(known)
    };
    let mut entries =
        state.split(',').map(|entry| entry.trim_matches([' ', '\t'])).filter(|entry| !entry.is_empty());
    entries.clone().count() <= 32
        && entries
            .all(|entry| entry.split_once('=').is_some_and(|(key, value)| is_key(key) && is_value(value)))
}

#[cfg(test)]
mod tests {
    use hostler_wire::{Limits, RequestHead};

    use super::*;

    const VALID: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn context(lines: &[&str], sample: u32, parent_based: bool) -> TraceContext {
        let mut head = RequestHead::default();
        let lines: String = lines.iter().map(|line| format!("traceparent: {line}\r\n")).collect();
        let text = format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        head.parse(text.as_bytes(), &Limits::default()).unwrap();
        TraceContext::of(&head.fields, sample, parent_based)
    }

    #[test]
    fn a_valid_context_is_continued_with_a_span_of_hostlers_own() {
        let context = context(&[VALID], 0, true);
        assert_eq!(context.id(), "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_eq!(context.parent, Some([0x00, 0xf0, 0x67, 0xaa, 0x0b, 0xa9, 0x02, 0xb7]));
        assert!(context.is_sampled);
        let told = context.for_member();
        assert!(told.starts_with(&VALID[..36]) && told.ends_with("-01") && told.len() == 55, "{told}");
        assert!(!told.contains("00f067aa0ba902b7"), "{told}");
    }

    #[test]
    fn the_sampled_flag_decides_only_if_the_configuration_says_so() {
        let unsampled = &[&*VALID.replace("-01", "-00")];
        assert!(!context(unsampled, 1, true).is_sampled);
        assert!(context(unsampled, 1, false).is_sampled);
        assert!(!context(&[VALID], 0, false).is_sampled);
        assert!(context(&[], 1, true).is_sampled);
        assert!(!context(&[], 0, true).is_sampled);
    }

    #[test]
    fn a_later_version_is_continued_as_far_as_it_is_known() {
        for value in
            ["01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-03", &format!("cc{}-more", &VALID[2..])]
        {
            assert_eq!(context(&[value], 0, true).id(), "4bf92f3577b34da6a3ce929d0e0e4736", "{value}");
        }
    }

    #[test]
    fn a_hostile_context_begins_a_new_trace() {
        let zeros = "0".repeat(32);
        for bad in [
            "",
            "00",
            &VALID[..54],
            &format!("{VALID}0"),
            &format!("{VALID}-more"),
            &format!("01{}0", &VALID[2..]),
            &VALID.to_uppercase(),
            &VALID.replace("4bf9", "4BF9"),
            &VALID.replace("4bf92f3577b34da6a3ce929d0e0e4736", &zeros),
            &VALID.replace("00f067aa0ba902b7", "0000000000000000"),
            &format!("ff{}", &VALID[2..]),
            &VALID.replace('-', "_"),
            &VALID.replace("4bf9", "4bg9"),
            &"a".repeat(4000),
        ] {
            let context = context(&[bad], 0, true);
            assert_eq!((context.parent, context.is_sampled), (None, false), "{bad}");
            assert_ne!(context.id(), "4bf92f3577b34da6a3ce929d0e0e4736", "{bad}");
        }
        // Two fields: it is not known which one counts.
        assert_eq!(context(&[VALID, VALID], 0, true).parent, None);
    }

    #[test]
    fn a_trace_state_goes_on_only_with_a_valid_context() {
        let other = &*VALID.replace("-01", "-0x");
        let cases: [(&str, &[&str], bool); 4] = [
            (VALID, &["a=1", "b=2"], true),
            (VALID, &["a=1", "b"], false),
            (VALID, &[], false),
            (other, &["a=1"], false),
        ];
        for (parent, states, goes_on) in cases {
            let states: String = states.iter().map(|state| format!("\r\ntracestate: {state}")).collect();
            let context = context(&[&format!("{parent}{states}")], 0, true);
            assert_eq!(context.passes_state, goes_on, "{parent}{states}");
        }
    }

    #[test]
    fn only_a_readable_trace_state_is_passed_on() {
        for state in ["", "a=b", "rojo=00f067aa0ba902b7, congo=t61rcWkgMzE", "tenant@vendor=x,", "a=b c"] {
            assert!(is_trace_state(state), "{state}");
        }
        let long = vec!["a=b"; 33].join(",");
        for state in ["a", "=b", "a=", "A=b", "a=b=c", "a=\u{1}", "a=ü", &long] {
            assert!(!is_trace_state(state), "{state}");
        }
    }
}
