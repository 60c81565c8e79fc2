//! TLS with certificates on both sides, by rustls.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;

const AUTHORITY: &str = "the authority's certificate";

/// An error in certificates or keys.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is missing or not PEM.
    #[error("cannot read {what} from `{path}`: {why}", path = .path.display())]
    Read {
        /// The expected content.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The error.
        why: String,
    },
    /// They do not match, or cannot be used.
    #[error("the certificate in `{path}` cannot be used: {why}", path = .path.display())]
    Unusable {
        /// The file with the certificate.
        path: PathBuf,
        /// The error.
        why: String,
    },
}

/// The PEM files of one side: its certificate, its key, and the authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// Its certificate, and those between it and the authority.
    pub cert: &'a Path,
    /// Its key.
    pub key: &'a Path,
    /// The authority for members and clients.
    pub ca: &'a Path,
}

type Loaded = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, Arc<RootCertStore>);

impl Identity<'_> {
    /// For a side that dials.
    ///
    /// # Errors
    /// If a file is missing or wrong.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let (certs, key, roots) = self.load()?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder.with_root_certificates(roots).with_client_auth_cert(certs, key)
            });
        config.map(Arc::new).map_err(|error| self.unusable(&error))
    }

    /// For a side that is dialled. The other side needs a certificate from the authority.
    ///
    /// # Errors
    /// If a file is missing or wrong.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let (certs, key, roots) = self.load()?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
        let verifier = verifier.build().map_err(|error| unreadable(AUTHORITY, self.ca, &error))?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder.with_client_cert_verifier(verifier).with_single_cert(certs, key)
            });
        config.map(Arc::new).map_err(|error| self.unusable(&error))
    }

    fn load(&self) -> Result<Loaded, TlsError> {
        let certs = certificates("certificates", self.cert)?;
        let key = PrivateKeyDer::from_pem_file(self.key);
        let key = key.map_err(|error| unreadable("a key", self.key, &error))?;
        let mut roots = RootCertStore::empty();
        for authority in certificates(AUTHORITY, self.ca)? {
            roots.add(authority).map_err(|error| unreadable(AUTHORITY, self.ca, &error))?;
        }
        Ok((certs, key, Arc::new(roots)))
    }

    fn unusable(&self, error: &rustls::Error) -> TlsError {
        TlsError::Unusable { path: self.cert.to_owned(), why: error.to_string() }
    }
}

/// Whether a valid certificate is for that name.
pub(crate) fn is_for(certificate: &CertificateDer<'_>, name: &str) -> bool {
    let (Ok(certificate), Ok(name)) =
        (ParsedCertificate::try_from(certificate), ServerName::try_from(name))
    else {
        return false;
    };
    verify_server_name(&certificate, &name).is_ok()
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let found =
        CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let found = found.map_err(|error| unreadable(what, path, &error))?;
    if found.is_empty() { Err(unreadable(what, path, &"it contains none")) } else { Ok(found) }
}

fn unreadable(what: &'static str, path: &Path, why: &dyn Display) -> TlsError {
    TlsError::Read { what, path: path.to_owned(), why: why.to_string() }
}
