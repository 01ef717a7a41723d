//! The `tls` of an upstream. Its files are read with the config, so that a reload reads them again.

use std::fs;
use std::io::Read as _;

use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use x509_parser::prelude::{ASN1Time, FromDer as _, X509Certificate};

use super::endpoints::Endpoints;
use crate::config::settings::{ClientCertificate, UpstreamTls};
use crate::config::table::{ConfigField, ConfigReader, ConfigTable, Located};
use crate::config::values::{self, Parsed};

/// The bundle of a system has a quarter of this.
const MAX_FILE: u64 = 1 << 20;

pub fn parse(
    reader: &mut ConfigReader,
    table: &mut ConfigTable,
    endpoints: Option<&Endpoints>,
) -> Option<UpstreamTls> {
    let field = table.take("tls")?;
    let mut table = reader.table("tls", field)?;
    let ca = table.take("ca").and_then(|field| read_file(reader, field));
    let ca = ca.map(|file| certificates(reader, &file));
    let (certificate, key) = (table.take("certificate"), table.take("key"));
    let client = parse_client(reader, certificate, key);
    let server_name = reader.optional(&mut table, "server_name", server_name);
    reader.finish(table);
    if let Some(endpoints) = endpoints
        && !endpoints.base_urls().any(|base_url| base_url.tls)
    {
        let message = "tls does nothing for base URLs with http://; write https://";
        reader.warnings.add(field.node.position, message);
    }
    Some(UpstreamTls {
        ca: ca.unwrap_or_default(),
        client,
        server_name,
        position: field.node.position,
    })
}

fn server_name(text: &str) -> Parsed<String> {
    match ServerName::try_from(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err("the name of a host, such as api.example.com".to_owned()),
    }
}

/// A certificate and its key, which may stand in the same file.
fn parse_client(
    reader: &mut ConfigReader,
    certificate: Option<ConfigField>,
    key: Option<ConfigField>,
) -> Option<ClientCertificate> {
    let Some(certificate) = certificate else {
        if let Some(key) = key {
            let message = "key goes with a certificate; add certificate, or remove the key";
            reader.problems.add(key.node.position, message);
        }
        return None;
    };
    let certificate = read_file(reader, certificate);
    let key = match key {
        Some(key) => Some(read_file(reader, key)?),
        None => None,
    };
    let certificate = certificate?;
    let key = key.as_ref().unwrap_or(&certificate);
    client_certificate(reader, &certificate, key)
}

/// The contents of a file.
fn read_file(reader: &mut ConfigReader, field: ConfigField) -> Option<Located<Vec<u8>>> {
    let path = reader.value(field, values::label)?;
    let read = || {
        let file = fs::File::open(&path.value)?;
        if !file.metadata()?.is_file() {
            return Err(std::io::Error::other("it is not a file"));
        }
        let mut bytes = Vec::new();
        file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
        match bytes.len() as u64 > MAX_FILE {
            true => Err(std::io::Error::other("it is larger than 1 MiB")),
            false => Ok(bytes),
        }
    };
    match read() {
        Ok(bytes) => Some(Located {
            value: bytes,
            written: path.written,
            position: path.position,
        }),
        Err(error) => {
            let message = format!("cannot read {:?}: {error}; name a PEM file", path.written);
            reader.problems.add(path.position, message);
            None
        }
    }
}

/// The certificates of a file, each of which is looked at.
fn certificates(reader: &mut ConfigReader, file: &Located<Vec<u8>>) -> Vec<Vec<u8>> {
    let read: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&file.value).collect();
    let read = read.ok().filter(|read| !read.is_empty());
    let Some(read) = read else {
        let message = format!("{:?} has no certificate; name a PEM file", file.written);
        reader.problems.add(file.position, message);
        return Vec::new();
    };
    let read: Vec<Vec<u8>> = read.iter().map(|der| der.to_vec()).collect();
    for der in &read {
        let problem = match X509Certificate::from_der(der) {
            Ok((_, certificate)) => {
                let warning = not_valid_now(&certificate).map(|warning| {
                    let subject = certificate.subject();
                    format!("{:?}: the certificate {subject} {warning}", file.written)
                });
                reader.warnings.add_some(file.position, warning);
                continue;
            }
            Err(_) => format!(
                "{:?} has a malformed certificate; name another",
                file.written
            ),
        };
        reader.problems.add(file.position, problem);
        return Vec::new();
    }
    read
}

fn not_valid_now(certificate: &X509Certificate) -> Option<String> {
    let (validity, now) = (certificate.validity(), ASN1Time::now());
    if validity.not_after < now {
        return Some(format!("has expired on {}", validity.not_after));
    }
    (validity.not_before > now).then(|| format!("is not valid before {}", validity.not_before))
}

fn client_certificate(
    reader: &mut ConfigReader,
    certificate: &Located<Vec<u8>>,
    key: &Located<Vec<u8>>,
) -> Option<ClientCertificate> {
    let chain = certificates(reader, certificate);
    let Ok(key_der) = PrivateKeyDer::from_pem_slice(&key.value) else {
        let message = format!(
            "{:?} has no private key without a password; name a PEM file",
            key.written
        );
        reader.problems.add(key.position, message);
        return None;
    };
    Some(ClientCertificate {
        chain,
        key: key_der.secret_der().to_vec(),
    })
}
