//! Determines the client's address: passes the lines of a head to `hostler-address`. Knows no requests beyond their fields.

use hostler_address::{AddressHeader, ClientAddress, Peer, Trust};
use hostler_wire::{Fields, Name, tokens};

/// The client by its connection and the head of its request.
pub(super) fn client(trust: &Trust, peer: Peer, fields: &Fields) -> ClientAddress {
    trust.client(peer, fields.all(name(trust.header)))
}

/// The field name as the parser classifies it.
fn name(header: AddressHeader) -> Name {
    match header {
        AddressHeader::XForwardedFor => Name::XForwardedFor,
        AddressHeader::Forwarded => Name::Forwarded,
        AddressHeader::XRealIp => Name::XRealIp,
        AddressHeader::CfConnectingIp => Name::CfConnectingIp,
        AddressHeader::TrueClientIp => Name::TrueClientIp,
    }
}

/// The members of all lines of a list field.
pub fn joined(fields: &Fields, name: Name) -> impl Iterator<Item = &[u8]> {
    fields.all(name).flat_map(tokens)
}

#[cfg(test)]
mod tests {
    use hostler_address::AddressSource;
    use hostler_wire::{Limits, RequestHead};

    use super::*;

    #[test]
    fn the_lines_of_the_one_header_are_read_and_no_others() {
        let all = [
            (AddressHeader::XForwardedFor, "6.6.6.6, 1.1.1.1"),
            (AddressHeader::Forwarded, "for=\"[2606:4700::1]:4711\""),
            (AddressHeader::XRealIp, "2.2.2.2"),
            (AddressHeader::CfConnectingIp, "3.3.3.3"),
            (AddressHeader::TrueClientIp, "4.4.4.4"),
        ];
        let lines: String =
            all.iter().map(|(header, value)| format!("{}: {value}\r\n", header.name())).collect();
        let mut head = RequestHead::default();
        head.parse(format!("GET / HTTP/1.1\r\nHost: a\r\n{lines}\r\n").as_bytes(), &Limits::default())
            .unwrap();
        for ((header, _), expected) in
            all.iter().zip(["1.1.1.1", "2606:4700::1", "2.2.2.2", "3.3.3.3", "4.4.4.4"])
        {
            let trust =
                Trust { networks: vec!["::1/128".parse().unwrap()], header: *header, ..Trust::default() };
            let found = client(&trust, Peer::Socket("::1".parse().unwrap()), &head.fields);
            assert_eq!(
                (found.ip.to_string().as_str(), found.source),
                (expected, AddressSource::Header(*header))
            );
        }
    }
}
