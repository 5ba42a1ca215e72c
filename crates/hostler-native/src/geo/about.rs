//! Answers about addresses, the caller's own and others: who may ask, what he gets, who may keep it. Knows no paths.

use std::net::IpAddr;

use hostler_address::AddressKind;
use hostler_config::Lookups;
use hostler_lookup::geo::DatabaseError;
use hostler_wire::Whole;

use super::asked::FactRequest;
use super::dataset::Dataset;
use super::facts::{Field, GeoFacts};
use super::render::said;
use super::shown::Shown;
use super::{Geo, batch, head, meta, render};
use crate::LookupRequest;
use crate::Nearest;
use crate::form::AnswerFormat;
use crate::problem::{problem, repeated};
use crate::query::QueryString;
use crate::tag::{self, Tagged};

/// Whose address is asked about.
#[derive(Clone, Copy)]
pub(super) enum AboutWhom {
    /// That of whoever asks.
    Own,
    /// One that he has named.
    Named(IpAddr),
}

impl Geo {
    /// Why he may not ask about others, if so.
    pub(super) fn refusal(&self, request: &LookupRequest<'_>) -> Option<Whole> {
        let client = request.client;
        let kind = AddressKind::of(client.ip);
        // A doubtful address may be that of a proxy, which is near though its client is not.
        let is_near = || {
            !client.doubtful
                && matches!(kind, AddressKind::Private | AddressKind::Loopback | AddressKind::LinkLocal)
        };
        match self.settings.lookups {
            Lookups::Public => None,
            Lookups::PrivateNet if is_near() => None,
            Lookups::PrivateNet => {
                Some(problem(403, "other addresses than your own are looked up for the own network only"))
            }
            Lookups::Off => Some(problem(403, "other addresses than your own are not looked up")),
        }
    }

    /// Whatever is wrong with a record, it is one that nothing is known of.
    fn facts<'a>(&self, dataset: &'a Dataset, ip: IpAddr, source: Option<&'static str>) -> GeoFacts<'a> {
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
        dataset: &'a Dataset,
        request: &LookupRequest<'_>,
        whose: AboutWhom,
    ) -> GeoFacts<'a> {
        match whose {
            AboutWhom::Own => self.facts(dataset, request.client.ip, Some(request.client.source.as_str())),
            AboutWhom::Named(ip) => self.facts(dataset, ip, None),
        }
    }

    /// One item of a batch.
    pub(super) fn look<'a>(&self, dataset: &'a Dataset, item: &[u8]) -> Result<GeoFacts<'a>, String> {
        Ok(self.facts(dataset, address(item)?, None))
    }

    pub(super) fn all(
        &self,
        request: &LookupRequest<'_>,
        whose: AboutWhom,
        form: Option<AnswerFormat>,
    ) -> Whole {
        let asked = match FactRequest::of(request.head.target(), &request.head.fields, form) {
            Ok(asked) => asked,
            Err(why) => return problem(400, why),
        };
        let dataset = self.dataset.load();
        let facts = self.facts_of(&dataset, request, whose);
        // Only the caller's own address has somebody who says so.
        let fields = asked.fields.iter().copied();
        let fields: Vec<_> = match whose {
            AboutWhom::Own => fields.collect(),
            AboutWhom::Named(_) => fields.filter(|field| *field != Field::Source).collect(),
        };
        let body = render::one(&said(&facts, &fields, &asked.languages()), facts.at(), asked.form);
        self.said(request, whose, asked.form.content_type(), body)
    }

    pub(super) fn field(&self, request: &LookupRequest<'_>, whose: AboutWhom, name: &[u8]) -> Whole {
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
            None => problem(
                404,
                format_args!("{}: that is not known of this address", String::from_utf8_lossy(name)),
            ),
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
        Whole::new(head(200, asked.form.content_type(), "private, no-store"), body)
    }

    pub(super) fn meta(&self) -> Whole {
        let attribution = self.settings.attribution.as_deref();
        let body = meta::body(&self.dataset.load(), attribution, self.counters.reloads.get());
        Whole::new(head(200, AnswerFormat::Json.content_type(), "no-cache"), format!("{body}\n"))
    }

    pub(super) fn nearest(
        &self,
        request: &LookupRequest<'_>,
        whose: AboutWhom,
        form: Option<AnswerFormat>,
        near: Option<&dyn Nearest>,
    ) -> Whole {
        let Some(near) = near else { return problem(404, "there are no postal codes on this route") };
        let dataset = self.dataset.load();
        let facts = self.facts_of(&dataset, request, whose);
        let Some((latitude, longitude)) = facts.place.coordinates else {
            return problem(404, "where this address is, is not known");
        };
        let told = QueryString::of(request.head.target()).and_then(|query| {
            let form = form
                .or(AnswerFormat::said(&query)?)
                .unwrap_or_else(|| AnswerFormat::liked(&request.head.fields));
            Ok((form, near.nearest((latitude, longitude), &query, form)?))
        });
        match told {
            Ok((form, Some(body))) => self.said(request, whose, form.content_type(), body),
            Ok((_, None)) => problem(404, "there is no postal code anywhere"),
            Err(why) => problem(400, why),
        }
    }

    /// An answer about an address: nobody but the caller may keep what is about him, and he need not.
    fn said(&self, request: &LookupRequest<'_>, whose: AboutWhom, content_type: &str, body: String) -> Whole {
        let AboutWhom::Named(_) = whose else {
            return Whole::new(head(200, content_type, "private, no-store"), body);
        };
        let scope = match self.settings.lookups {
            Lookups::Public => "public",
            // Whether there is an answer depends on who asks.
            Lookups::PrivateNet | Lookups::Off => "private",
        };
        let cache_control = format!("{scope}, max-age={}", self.settings.max_age.as_secs());
        let mut head = head(200, content_type, &cache_control);
        head.fields.add(b"Vary", b"Accept, Accept-Language");
        tag::tagged(request, Tagged { head, tag: tag::of(body.as_bytes()), body: body.into() })
    }
}

/// An address that was named, as its canonical self.
pub(super) fn address(text: &[u8]) -> Result<IpAddr, String> {
    let ip = std::str::from_utf8(text).ok().and_then(|text| text.parse::<IpAddr>().ok());
    ip.map(|ip| ip.to_canonical()).ok_or_else(|| format!("{} is not an IP address", repeated(text)))
}
