//! `hostler pack`: converts files of postal codes into one pack. Knows no running Hostler.

use std::process::ExitCode;

use hostler_lookup::{Mapping, postal};

use super::{Pack, complain, print};

/// Writes the pack and exits with 0. Exits with 2 if a file is wrong, and with 1 if the pack cannot be written. Says why.
pub fn pack(args: &Pack) -> ExitCode {
    let image = match postal::pack(&args.files) {
        Ok(image) => image,
        Err(error) => {
            complain(error);
            return ExitCode::from(2);
        }
    };
    let (output, bytes) = (&args.output, image.as_bytes().len());
    let written = image.write(output).map_err(|error| format!("{}: {error}", output.display()));
    drop(image);
    let opened = written.and_then(|()| {
        let opened = postal::PostalFile::open(std::slice::from_ref(output), Mapping::InPlace);
        opened.map_err(|error| error.to_string())
    });
    match opened {
        Ok(postal) => {
            let countries: Vec<_> = postal.countries().map(|(_, country)| country.as_str()).collect();
            print(&format!(
                "{}: {} places in {}, {} bytes\n",
                output.display(),
                postal.len(),
                countries.join(", "),
                bytes
            ))
        }
        Err(why) => {
            complain(why);
            ExitCode::FAILURE
        }
    }
}
