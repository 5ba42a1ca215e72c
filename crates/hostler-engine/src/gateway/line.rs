//! Turns an exchange into a line of the access log. Does not know how the line is written.

use hostler_wire::Name;

use crate::exchange::{Exchange, Protocol};
use crate::journal::{Access, LogRules};

/// Writes the access line of an exchange in a format of its own, with the line break.
pub type AccessFormat = fn(&Exchange, &mut Vec<u8>, &LogRules);

pub fn access_line(exchange: &Exchange) -> Access<'_> {
    let text = |bytes| std::str::from_utf8(bytes).unwrap_or("(not UTF-8)");
    let field = |name| exchange.head.fields.first(name).map(text);
    let (log_facts, registered) = (&exchange.log_facts, exchange.registered.as_deref());
    Access {
        time: jiff::Timestamp::now(),
        id: exchange.id.as_str(),
        trace_id: exchange.trace.as_ref().map(|trace| trace.id()),
        client: Some(exchange.client.ip),
        client_doubtful: exchange.client.doubtful,
        protocol: protocol(exchange),
        method: text(exchange.head.method()),
        host: text(exchange.host()),
        target: text(exchange.head.target()),
        status: log_facts.status,
        sample: None,
        route: log_facts.route.as_deref(),
        pool: log_facts.pool.as_deref(),
        member: log_facts.member.as_deref(),
        attempts: log_facts.attempts,
        queue_length: log_facts.queue_length,
        in_use: log_facts.in_use,
        moved: log_facts.moved,
        low: log_facts.low,
        fair_key: log_facts.fair.as_ref().map(|fair| fair.words().to_string()),
        would_refuse: log_facts.would_refuse,
        hedge: log_facts.hedge,
        early_hints: Some(log_facts.early_hints).filter(|links| *links > 0),
        expected_ms: log_facts.expected.as_ref().and_then(|expected| expected.cost),
        cache: log_facts.cached(),
        total_ms: exchange.timings.started.elapsed(),
        queue_wait_ms: exchange.timings.queue_wait,
        failed_tries_ms: Some(exchange.timings.failed_tries).filter(|time| !time.is_zero()),
        slot_hold_ms: exchange.timings.slot_hold,
        worker_time_ms: exchange.timings.worker_time,
        worker_cpu_ms: exchange.timings.worker_cpu,
        bytes_in: log_facts.bytes_in,
        bytes_out: log_facts.bytes_out,
        refusal: log_facts.refusal,
        fallback: log_facts.fallback,
        detail: log_facts.detail.as_deref(),
        aborted: log_facts.aborted,
        stream_end: log_facts.stream_end,
        registered_id: registered.map(|registered| registered.id()),
        instance: registered.and_then(|registered| registered.instance_id()),
        user_agent: field(Name::UserAgent),
        referer: field(Name::Referer),
    }
}

/// The line of a background fetch, for which no client waits.
pub(super) fn refresh_line(exchange: &Exchange) -> Access<'_> {
    let line = access_line(exchange);
    // The client's request has its own line.
    Access {
        client: None,
        client_doubtful: false,
        cache: Some("refresh"),
        user_agent: None,
        referer: None,
        ..line
    }
}

fn protocol(exchange: &Exchange) -> &str {
    match exchange.protocol {
        Protocol::Http2 => "HTTP/2",
        Protocol::Http1 => exchange.head.version_text(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read;
    use std::net::SocketAddr;
    use std::os::fd::OwnedFd;

    use super::*;
    use crate::exchange::Sweep;
    use crate::journal::{Journal, LogFormat};

    #[tokio::test]
    async fn no_name_of_a_member_moves_the_cursor_or_begins_a_line() {
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let mut exchange = Exchange::new(address, address, Sweep::new().deadline());
        exchange.log_facts.pool = Some("a.test\u{1b}[2J".into());
        exchange.log_facts.member = Some("10.0.0.7\n12:00:00.000 forged:80".into());
        let (mut reader, writer) = std::io::pipe().unwrap();
        let form = LogFormat::Pretty { coloured: false };
        let journal = Journal::new(form, true, File::from(OwnedFd::from(writer))).unwrap();
        journal.access(|| access_line(&exchange));
        journal.end();
        let mut told = String::new();
        reader.read_to_string(&mut told).unwrap();
        assert_eq!(told.lines().count(), 1, "{told:?}");
        assert!(told.contains(r" a.test\x1b[2J/10.0.0.7\x0a12:00:00.000 forged:80"), "{told:?}");
    }
}
