//! TLS with certificates on both sides, by rustls.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::verify_server_name;
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::server::{ParsedCertificate, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use thiserror::Error;

/// What is wrong with certificates or keys.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file is missing or is no PEM.
    #[error("cannot read {what} from `{path}`: {why}", path = .path.display())]
    Read {
        /// What it should hold.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// They do not go together, or are none.
    #[error("the certificate in `{path}` cannot be used: {why}", path = .path.display())]
    Unusable {
        /// The file with the certificate.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

/// Where one's certificate, its key and the authority's certificate are, all PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity<'a> {
    /// One's certificate, and those between it and the authority's.
    pub cert: &'a Path,
    /// Its key.
    pub key: &'a Path,
    /// The authority for everybody in the cluster.
    pub ca: &'a Path,
}

type Loaded = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>, Arc<RootCertStore>);

impl Identity<'_> {
    /// For who dials.
    ///
    /// # Errors
    /// If a file is not what it should be.
    pub fn client_config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        let (certs, key, roots) = self.load()?;
        let config = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder.with_root_certificates(roots).with_client_auth_cert(certs, key)
            });
        config.map(Arc::new).map_err(|error| self.unusable(&error))
    }

    /// For who is dialled: everybody needs a certificate from the authority.
    ///
    /// # Errors
    /// If a file is not what it should be.
    pub fn server_config(&self) -> Result<Arc<ServerConfig>, TlsError> {
        let (certs, key, roots) = self.load()?;
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider());
        let verifier = verifier.build().map_err(|error| TlsError::Read {
            what: "the authority's certificate",
            path: self.ca.to_owned(),
            why: error.to_string(),
        })?;
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .and_then(|builder| {
                builder.with_client_cert_verifier(verifier).with_single_cert(certs, key)
            });
        config.map(Arc::new).map_err(|error| self.unusable(&error))
    }

    fn load(&self) -> Result<Loaded, TlsError> {
        let certs = certificates("certificates", self.cert)?;
        let authorities = certificates("the authority's certificate", self.ca)?;
        let key = PrivateKeyDer::from_pem_file(self.key).map_err(|error| TlsError::Read {
            what: "a key",
            path: self.key.to_owned(),
            why: error.to_string(),
        })?;
        let mut roots = RootCertStore::empty();
        for authority in authorities {
            roots.add(authority).map_err(|error| TlsError::Read {
                what: "the authority's certificate",
                path: self.ca.to_owned(),
                why: error.to_string(),
            })?;
        }
        Ok((certs, key, Arc::new(roots)))
    }

    fn unusable(&self, error: &rustls::Error) -> TlsError {
        TlsError::Unusable { path: self.cert.to_owned(), why: error.to_string() }
    }
}

/// Whether a certificate, already found good, is for that name.
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
    let bad = |why: String| TlsError::Read { what, path: path.to_owned(), why };
    let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(error.to_string()))?;
    let found: Vec<_> = found.collect::<Result<_, _>>().map_err(|error| bad(error.to_string()))?;
    if found.is_empty() { Err(bad("there is none in it".to_owned())) } else { Ok(found) }
}
