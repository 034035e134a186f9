use std::{net::SocketAddr, time::Instant};

use rustls::{
    ClientConfig, DigitallySignedStruct, Error, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    pki_types::{CertificateDer, ServerName, UnixTime},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinHandle,
};
use tokio_rustls::{TlsConnector, client::TlsStream};

use super::*;
use crate::{
    routes::routes,
    testing::{metrics, secret, self_signed, snapshot},
};

const REVIEW: &str = include_str!("../../../admission/tests/reviews/linux.json");

/// Takes any certificate: which one it was is what the test asks.
#[derive(Debug)]
struct Any;

impl ServerCertVerifier for Any {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        ring::default_provider().signature_verification_algorithms.supported_schemes()
    }
}

struct Running {
    address: SocketAddr,
    certificate: Served,
    readiness: Readiness,
    stop: CancellationToken,
    server: JoinHandle<anyhow::Result<()>>,
}

async fn start(drain: Duration) -> Running {
    let (snapshot, readiness) = snapshot();
    let certificate = Served::new(metrics(), readiness.part("certificate"));
    let (chain, key) = self_signed("first");
    certificate.take(&secret(&chain, &key));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let routes = routes(snapshot, metrics(), readiness.clone());
    let serving = on(listener, drain, routes, certificate.clone(), readiness.clone(), stop.clone());
    Running { address, certificate, readiness, stop, server: tokio::spawn(serving) }
}

async fn connect(address: SocketAddr) -> std::io::Result<TlsStream<TcpStream>> {
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Any))
        .with_no_client_auth();
    let stream = TcpStream::connect(address).await?;
    TlsConnector::from(Arc::new(config)).connect(ServerName::try_from("webhook").unwrap(), stream).await
}

/// Asks once and returns the head of the answer.
async fn ask(connection: &mut TlsStream<TcpStream>) -> std::io::Result<String> {
    let request =
        format!("POST /mutate HTTP/1.1\r\nhost: w\r\ncontent-length: {}\r\n\r\n{REVIEW}", REVIEW.len());
    connection.write_all(request.as_bytes()).await?;
    let mut answer = vec![0; 64 << 10];
    let read = connection.read(&mut answer).await?;
    Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
}

fn served(connection: &TlsStream<TcpStream>) -> Vec<u8> {
    connection.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn a_new_certificate_is_served_at_once_and_old_connections_live_on() {
    let running = start(Duration::ZERO).await;
    let mut old = connect(running.address).await.unwrap();
    assert!(ask(&mut old).await.unwrap().starts_with("HTTP/1.1 200"));
    let (chain, key) = self_signed("second");
    running.certificate.take(&secret(&chain, &key));
    let new = connect(running.address).await.unwrap();
    assert_ne!(served(&old), served(&new));
    assert!(ask(&mut old).await.unwrap().starts_with("HTTP/1.1 200"));
    running.certificate.take(&secret("broken", &key));
    assert_eq!(served(&connect(running.address).await.unwrap()), served(&new));
}

#[tokio::test]
async fn while_it_drains_it_answers_closes_and_is_not_ready() {
    let running = start(Duration::from_millis(600)).await;
    let mut kept = connect(running.address).await.unwrap();
    let head = ask(&mut kept).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && !head.contains("connection: close"), "{head}");

    let began = Instant::now();
    running.stop.cancel();
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert!(running.readiness.missing().contains(&"draining"));
    let head = ask(&mut kept).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("connection: close"), "{head}");
    let mut new = connect(running.address).await.unwrap();
    assert!(ask(&mut new).await.unwrap().starts_with("HTTP/1.1 200"), "somebody has not heard of it yet");

    running.server.await.unwrap().unwrap();
    assert!((600..4000).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());
    assert!(connect(running.address).await.is_err());
}

#[tokio::test]
async fn before_there_is_a_certificate_a_handshake_fails_and_the_server_lives_on() {
    let running = start(Duration::ZERO).await;
    let bare = Served::new(metrics(), running.readiness.part("other"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = on(
        listener,
        Duration::ZERO,
        Router::new(),
        bare.clone(),
        running.readiness.clone(),
        running.stop.clone(),
    );
    let server = tokio::spawn(serving);
    assert!(connect(address).await.is_err());
    let (chain, key) = self_signed("late");
    bare.take(&secret(&chain, &key));
    assert!(connect(address).await.is_ok());
    assert!(!server.is_finished());
}
