//! TLS: the server is known by its certificate, or it is not talked to.
#![cfg(feature = "tls")]

use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tollgate_redis::{RedisOpenError, RedisStore};
use tollgate_redis_local::{Port, Server, ServerKind};

const CANARY: &str = "hunter2-canary";

/// A key and a certificate for this host, with the authority that signed it, in a directory that is deleted on drop. Nothing of
/// them exists outside a run.
struct Certificates(PathBuf);

impl Certificates {
    fn make() -> Certificates {
        let folder = std::env::temp_dir().join(format!("tollgate-redis-tls-{}", std::process::id()));
        // A process that was killed leaves its folder, and this one may have its number.
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir(&folder).expect("a folder for temporary files");
        let mut authority = CertificateParams::default();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let signing_key = KeyPair::generate().expect("the host has random numbers");
        let root = authority.self_signed(&signing_key).expect("an authority signs itself");
        let issuer = Issuer::from_params(&authority, &signing_key);
        let key = KeyPair::generate().expect("the host has random numbers");
        let server = CertificateParams::new(["127.0.0.1".to_owned()]).expect("it is an address");
        let server = server.signed_by(&key, &issuer).expect("the authority signs it");
        write(&folder.join("ca.pem"), &root.pem());
        write(&folder.join("server.pem"), &server.pem());
        write(&folder.join("server.key"), &key.serialize_pem());
        Certificates(folder)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_string_lossy().into_owned()
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a file that only its owner can read.
fn write(path: &Path, text: &str) {
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.as_mut().map(|file| std::io::Write::write_all(file, text.as_bytes()));
    written.expect("a file can be created").expect("it can be written");
}

fn open(url: &str) -> Result<RedisStore, RedisOpenError> {
    let store = RedisStore::builder(url).timeout(Duration::from_secs(5)).build().wait();
    if let Err(error) = &store {
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error}");
    }
    store
}

#[test]
fn a_server_is_talked_to_if_its_certificate_is_good() {
    let reserved = Port::reserve();
    let port = reserved.number();
    let made = Certificates::make();
    let (cert, key, ca) = (made.file("server.pem"), made.file("server.key"), made.file("ca.pem"));
    let number = port.to_string();
    let tls = ["--tls-port", &number, "--tls-cert-file", &cert, "--tls-key-file", &key];
    let more = ["--tls-ca-cert-file", &ca, "--tls-auth-clients", "no", "--requirepass", CANARY, "--save", ""];
    let _server = Server::with(ServerKind::Redis, &[&tls[..], &more].concat());
    assert!(open(&format!("rediss://:{CANARY}@127.0.0.1:{port}?ca={ca}")).is_ok());
    let unknown = open(&format!("rediss://:{CANARY}@127.0.0.1:{port}"));
    assert!(unknown.is_err(), "nobody vouches for it");
    let error = open(&format!("rediss://:{CANARY}@127.0.0.1:{port}?ca=/no/such/file"));
    assert!(matches!(error, Err(RedisOpenError::BadSetting(_))));
    assert!(open(&format!("redis://:{CANARY}@127.0.0.1:{port}")).is_err(), "it talks TLS only");
}
