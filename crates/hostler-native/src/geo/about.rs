//! Responses about addresses, the client's own and others: who may ask, what the response says, and which caches may
//! store it. Knows no paths.

use std::net::IpAddr;

use hostler_address::AddressKind;
use hostler_config::Lookups;
use hostler_lookup::geo::DatabaseError;
use hostler_wire::Whole;

use super::asked::FactRequest;
use super::dataset::GeoDataset;
use super::facts::{Field, GeoFacts};
use super::render::said;
use super::shown::Shown;
use super::{Geo, batch, meta, render};
use crate::form::AnswerFormat;
use crate::head;
use crate::problem::{problem, repeated};
use crate::query::QueryString;
use crate::tag::{self, Tagged};
use crate::{LookupRequest, Nearest};

/// The source of an address that may be that of a proxy.
const DOUBTFUL: &str = "doubtful";

/// The address that a request asks about.
#[derive(Clone, Copy)]
pub(super) enum AskedAddress {
    /// The client's own address.
    Own,
    /// An address that the request names.
    Named(IpAddr),
}

impl Geo {
    /// The refusal, if the client must not ask about other addresses.
    pub(super) fn refusal(&self, request: &LookupRequest<'_>) -> Option<Whole> {
        let client = request.client;
        let kind = AddressKind::of(client.ip);
        // A doubtful address may be that of a proxy, which may be local although its client is not.
        let is_near = || {
            !client.doubtful
                && matches!(kind, AddressKind::Private | AddressKind::Loopback | AddressKind::LinkLocal)
        };
        match self.settings.lookups {
            Lookups::Public => None,
            Lookups::PrivateNet if is_near() => None,
            Lookups::PrivateNet => Some(problem(
                403,
                "this service looks up other addresses only for clients of its own network",
            )),
            Lookups::Off => Some(problem(403, "this service does not look up other addresses than your own")),
        }
    }

    /// A damaged record counts as one without data.
    fn facts<'a>(&self, dataset: &'a GeoDataset, ip: IpAddr, source: Option<&'static str>) -> GeoFacts<'a> {
        self.counters.lookups.add();
        let decimals = self.settings.decimals;
        let facts = dataset.facts(ip, source, decimals).unwrap_or_else(|_: DatabaseError| {
            self.counters.broken.add();
            GeoFacts::unknown(ip, source, decimals)
        });
        if facts.place.city(&[]).is_none() {
            self.counters.unknown.add();
        }
        facts
    }

    fn facts_of<'a>(
        &self,
        dataset: &'a GeoDataset,
        request: &LookupRequest<'_>,
        whose: AskedAddress,
    ) -> GeoFacts<'a> {
        match whose {
            // The place of a proxy is not that of its client.
            AskedAddress::Own if request.client.doubtful => {
                self.counters.lookups.add();
                self.counters.unknown.add();
                GeoFacts::unknown(request.client.ip, Some(DOUBTFUL), self.settings.decimals)
            }
            AskedAddress::Own => self.facts(dataset, request.client.ip, Some(request.client.source.as_str())),
            AskedAddress::Named(ip) => self.facts(dataset, ip, None),
        }
    }

    /// One item of a batch.
    pub(super) fn look<'a>(&self, dataset: &'a GeoDataset, item: &[u8]) -> Result<GeoFacts<'a>, String> {
        Ok(self.facts(dataset, address(item)?, None))
    }

    pub(super) fn all(
        &self,
        request: &LookupRequest<'_>,
        whose: AskedAddress,
        form: Option<AnswerFormat>,
    ) -> Whole {
        let asked = match FactRequest::of(request.head.target(), &request.head.fields, form) {
            Ok(asked) => asked,
            Err(why) => return problem(400, why),
        };
        let dataset = self.dataset.load();
        let facts = self.facts_of(&dataset, request, whose);
        // Only the client's own address has a source.
        let fields = asked.fields.iter().copied();
        let fields: Vec<_> = match whose {
            AskedAddress::Own => fields.collect(),
            AskedAddress::Named(_) => fields.filter(|field| *field != Field::Source).collect(),
        };
        let body = render::one(&said(&facts, &fields, &asked.languages()), facts.at(), asked.form);
        self.said(request, whose, asked.form.content_type(), body)
    }

    pub(super) fn field(&self, request: &LookupRequest<'_>, whose: AskedAddress, name: &[u8]) -> Whole {
        let Some(shown) = Shown::named(name) else {
            return problem(404, format_args!("there is no {}; there are {}", repeated(name), Shown::NAMES));
        };
        let asked =
            match FactRequest::of(request.head.target(), &request.head.fields, Some(AnswerFormat::Text)) {
                Ok(asked) => asked,
                Err(why) => return problem(400, why),
            };
        let dataset = self.dataset.load();
        let facts = self.facts_of(&dataset, request, whose);
        match shown.text(&facts, &asked.languages()) {
            Some(text) => self.said(request, whose, AnswerFormat::Text.content_type(), format!("{text}\n")),
            None => {
                problem(404, format_args!("{}: not known for this address", String::from_utf8_lossy(name)))
            }
        }
    }

    pub(super) fn batch(&self, request: &LookupRequest<'_>, form: Option<AnswerFormat>) -> Whole {
        if let Some(refusal) = self.refusal(request) {
            return refusal;
        }
        let asked = match FactRequest::of(request.head.target(), &request.head.fields, form) {
            Ok(asked) => asked,
            Err(why) => return problem(400, why),
        };
        let items = match batch::items(request.body) {
            Ok(items) => items,
            Err(refusal) => return *refusal,
        };
        let body = batch::body(self, &self.dataset.load(), &items, &asked);
        Whole::new(head::of(200, asked.form.content_type(), "private, no-store"), body)
    }

    pub(super) fn meta(&self) -> Whole {
        let attribution = self.settings.attribution.as_deref();
        let body = meta::body(&self.dataset.load(), attribution, self.counters.reloads.get());
        Whole::new(head::of(200, AnswerFormat::Json.content_type(), "no-cache"), format!("{body}\n"))
    }

    pub(super) fn nearest(
        &self,
        request: &LookupRequest<'_>,
        whose: AskedAddress,
        form: Option<AnswerFormat>,
        near: Option<&dyn Nearest>,
    ) -> Whole {
        let Some(near) = near else { return problem(404, "there are no postal codes on this route") };
        let dataset = self.dataset.load();
        let facts = self.facts_of(&dataset, request, whose);
        let Some((latitude, longitude)) = facts.place.coordinates else {
            return problem(404, "the location of this address is not known");
        };
        let told = QueryString::of(request.head.target()).and_then(|query| {
            let form = form
                .or(AnswerFormat::said(&query)?)
                .unwrap_or_else(|| AnswerFormat::liked(&request.head.fields));
            Ok((form, near.nearest((latitude, longitude), &query, form)?))
        });
        match told {
            Ok((form, Some(body))) => self.said(request, whose, form.content_type(), body),
            Ok((_, None)) => problem(404, "the data has no postal code"),
            Err(why) => problem(400, why),
        }
    }

    /// A response about an address. Only the client itself may store a response about its own address, and must
    /// revalidate it.
    fn said(
        &self,
        request: &LookupRequest<'_>,
        whose: AskedAddress,
        content_type: &str,
        body: String,
    ) -> Whole {
        let AskedAddress::Named(_) = whose else {
            return Whole::new(head::of(200, content_type, "private, no-store"), body);
        };
        let scope = match self.settings.lookups {
            Lookups::Public => "public",
            // Whether the client gets an answer depends on its address.
            Lookups::PrivateNet | Lookups::Off => "private",
        };
        let cache_control = format!("{scope}, max-age={}", self.settings.max_age.as_secs());
        let mut head = head::of(200, content_type, &cache_control);
        head.fields.add(b"Vary", b"Accept, Accept-Language");
        tag::tagged(request, Tagged { head, tag: tag::of(body.as_bytes()), body: body.into() })
    }
}

/// An address from a request, in canonical form.
pub(super) fn address(text: &[u8]) -> Result<IpAddr, String> {
    let ip = std::str::from_utf8(text).ok().and_then(|text| text.parse::<IpAddr>().ok());
    ip.map(|ip| ip.to_canonical()).ok_or_else(|| format!("{} is not an IP address", repeated(text)))
}
