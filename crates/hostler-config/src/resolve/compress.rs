//! The meaning of `compress`: a route's own, or the server's. Knows no responses.

use std::sync::Arc;

use hostler_coding::{Coding, EncoderEffort, EncodingPlan};

use super::Resolver;
use crate::document::KeyPath;
use crate::file::{Compress, Effort, Encoding, MediaType};
use crate::value::Switch;

impl Resolver<'_> {
    /// The meaning of the server's `compress`, for routes without `compress` or with `true`.
    pub(super) fn server_compress(&mut self, written: &Switch<Compress>) -> Option<Arc<EncodingPlan>> {
        match written {
            Switch::Word(on) => on.then(|| Arc::new(plan(&Compress::default()))),
            Switch::Value(table) => self.plan_of(&KeyPath::of("server.compress"), table),
        }
    }

    /// The meaning of a route's `compress`.
    pub(super) fn route_compress(
        &mut self,
        path: &KeyPath,
        written: Option<&Switch<Compress>>,
        of_server: Option<&Arc<EncodingPlan>>,
    ) -> Option<Arc<EncodingPlan>> {
        match written {
            None => of_server.cloned(),
            Some(Switch::Word(false)) => None,
            Some(Switch::Word(true)) => {
                Some(of_server.cloned().unwrap_or_else(|| Arc::new(plan(&Compress::default()))))
            }
            Some(Switch::Value(table)) => self.plan_of(&path.key("compress"), table),
        }
    }

    fn plan_of(&mut self, path: &KeyPath, table: &Compress) -> Option<Arc<EncodingPlan>> {
        if table.encodings.is_empty() && !self.report.has_errors() {
            self.refuse(
                &path.key("encodings"),
                "at least one encoding is needed; to disable compression, write compress = false",
            );
        }
        for (index, encoding) in table.encodings.iter().enumerate() {
            if table.encodings[..index].contains(encoding) {
                self.refuse(&path.key("encodings").index(index), "is in the list twice");
            }
        }
        Some(Arc::new(plan(table)))
    }
}

fn plan(table: &Compress) -> EncodingPlan {
    let coding = |encoding: &Encoding| match encoding {
        Encoding::Zstd => Coding::Zstd,
        Encoding::Br => Coding::Brotli,
        Encoding::Gzip => Coding::Gzip,
    };
    EncodingPlan {
        codings: table.encodings.iter().map(coding).collect(),
        types: table.types.0.iter().map(|MediaType(range)| range.clone()).collect(),
        min_size: table.min_size.0,
        effort: match table.effort {
            Effort::Low => EncoderEffort::Low,
            Effort::Balanced => EncoderEffort::Balanced,
            Effort::High => EncoderEffort::High,
        },
        event_streams: table.event_streams,
    }
}
