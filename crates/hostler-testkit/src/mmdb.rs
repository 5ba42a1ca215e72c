//! Databases of places for tests, in both schemas. Does not know what reads them.

use std::path::{Path, PathBuf};

use mmdb_writer::ipnet::IpNet;
use mmdb_writer::{IpVersion, Value, Writer};

/// A database during construction.
pub struct Mmdb {
    writer: Writer,
}

/// A database of this type for both families of addresses.
pub fn mmdb(database_type: &str) -> Mmdb {
    Mmdb::of(database_type, IpVersion::V6)
}

/// A database for IPv4 only.
pub fn mmdb_v4(database_type: &str) -> Mmdb {
    Mmdb::of(database_type, IpVersion::V4)
}

impl Mmdb {
    fn of(database_type: &str, version: IpVersion) -> Self {
        Self { writer: Writer::builder(database_type.to_owned()).ip_version(version).build() }
    }

    /// A network in the nested schema: its city by language, its country, latitude and longitude.
    pub fn city(mut self, network: &str, city: &[(&str, &str)], country: &str, at: (f64, f64)) -> Self {
        let names = Value::map(city.iter().map(|(language, name)| (*language, Value::from(*name))));
        let (latitude, longitude) = (Value::from(at.0), Value::from(at.1));
        let record = Value::map([
            ("city", Value::map([("names", names)])),
            ("country", Value::map([("iso_code", Value::from(country))])),
            ("location", Value::map([("latitude", latitude), ("longitude", longitude)])),
        ]);
        self.insert(network, record);
        self
    }

    /// A network in the flat schema of ip-location-db.
    pub fn flat(mut self, network: &str, city: &str, country: &str, at: (f32, f32)) -> Self {
        let texts = [("city", city), ("country_code", country), ("state1", ""), ("timezone", "")];
        let texts = texts.map(|(name, text)| (name, Value::from(text)));
        let degrees = [("latitude", Value::from(at.0)), ("longitude", Value::from(at.1))];
        self.insert(network, Value::map(texts.into_iter().chain(degrees)));
        self
    }

    /// A network with any record. Numbers in it are floats.
    pub fn record(mut self, network: &str, record: &serde_json::Value) -> Self {
        self.writer.insert(network.parse::<IpNet>().unwrap(), record).unwrap();
        self
    }

    fn insert(&mut self, network: &str, record: Value) {
        self.writer.insert_value(network.parse::<IpNet>().unwrap(), record).unwrap();
    }

    /// Writes it into a folder with a rename. A process that has opened the old file keeps it.
    pub fn write(self, folder: &Path, name: &str) -> PathBuf {
        let (new, path) = (folder.join(format!("{name}.new")), folder.join(name));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&new, self.writer.to_bytes().unwrap()).unwrap();
        std::fs::rename(&new, &path).unwrap();
        path
    }
}
