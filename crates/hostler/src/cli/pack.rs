//! `hostler pack`: converts files of postal codes into one pack. Knows no running Hostler.

use std::process::ExitCode;

use hostler_lookup::{Mapping, postal};

use super::{Pack, complain, print};

/// Writes the pack and exits with 0. Exits with 2 if a file is wrong, and says why.
pub fn pack(args: &Pack) -> ExitCode {
    let (output, files) = (&args.output, &args.files);
    let packed = postal::pack(files).map_err(|error| error.to_string());
    let written = packed.and_then(|image| {
        let bytes = image.as_bytes().len();
        let write = image.write(output).map_err(|error| format!("{}: {error}", output.display()));
        write.map(|()| bytes)
    });
    match written.and_then(|bytes| {
        let opened = postal::PostalFile::open(std::slice::from_ref(output), Mapping::InPlace);
        let opened = opened.map_err(|error| error.to_string())?;
        Ok((opened, bytes))
    }) {
        Ok((postal, bytes)) => {
            let countries: Vec<_> = postal.countries().map(|(_, country)| country.as_str()).collect();
            print(&format!(
                "{}: {} places in {}, {} bytes\n",
                output.display(),
                postal.len(),
                countries.join(", "),
                bytes
            ))
        }
        Err(error) => {
            complain(&error);
            ExitCode::from(2)
        }
    }
}
