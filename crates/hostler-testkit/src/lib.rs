//! The language that Hostler's tests speak: site, upstream, client, worker, eventually.
