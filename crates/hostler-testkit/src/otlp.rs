//! Receives spans by OTLP over HTTP, and starts a real OpenTelemetry Collector. Knows no Hostler.

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};

use axum::body::Bytes;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::serve::Listener;
use axum::{Router, routing::post};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use rustls::ServerConfig;
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::eventually::eventually;
use crate::port::held_port;
use crate::program::otel_collector;
use crate::server_process::ServerProcess;

/// Receives OTLP over HTTP, and decodes it with the types of the OpenTelemetry project.
#[derive(Clone, Default)]
pub struct SpanReceiver(Arc<Mutex<ReceivedSpans>>);

#[derive(Default)]
struct ReceivedSpans {
    spans: Vec<Span>,
    /// Of the last message.
    headers: HeaderMap,
    rejects: bool,
}

impl SpanReceiver {
    /// Starts it on a free port, without TLS.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start() -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (receiver, address) = (Self::default(), listener.local_addr().unwrap());
        receiver.serve(listener);
        (receiver, address)
    }

    /// Starts it on a free port, with TLS.
    ///
    /// # Panics
    /// If it cannot listen.
    pub async fn start_with_tls(config: ServerConfig) -> (Self, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (receiver, address) = (Self::default(), listener.local_addr().unwrap());
        receiver.serve(OverTls { listener, acceptor: TlsAcceptor::from(Arc::new(config)) });
        (receiver, address)
    }

    /// Receives on this listener until the runtime ends.
    pub fn serve(&self, listener: impl Listener<Addr = SocketAddr>) {
        let receiver = self.clone();
        let take = move |headers: HeaderMap, body: Bytes| async move { receiver.take(headers, body) };
        let app = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, app).await });
    }

    /// From now on each message is taken, and its spans are rejected.
    ///
    /// # Panics
    /// If another thread has panicked.
    pub fn reject(&self) {
        self.0.lock().unwrap().rejects = true;
    }

    fn take(&self, headers: HeaderMap, body: Bytes) -> Response {
        if headers.get("content-type").is_none_or(|kind| kind != "application/x-protobuf") {
            return StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response();
        }
        let Ok(request) = ExportTraceServiceRequest::decode(body) else {
            return StatusCode::BAD_REQUEST.into_response();
        };
        let mut received = self.0.lock().unwrap();
        let scopes = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        received.spans.extend(scopes.flat_map(|scope| scope.spans));
        received.headers = headers;
        let partial_success = received
            .rejects
            .then(|| ExportTracePartialSuccess { rejected_spans: 4, error_message: "too old".into() });
        ExportTraceServiceResponse { partial_success }.encode_to_vec().into_response()
    }

    /// The spans of the request with this path, its own span first.
    ///
    /// # Panics
    /// If they do not come.
    pub async fn of(&self, path: &str) -> Vec<Span> {
        eventually("the spans of the request arrive", async || {
            let all = &self.0.lock().unwrap().spans;
            let server = all.iter().find(|span| attribute(span, "url.path").as_deref() == Some(path))?;
            Some(all.iter().filter(|span| span.trace_id == server.trace_id).cloned().collect())
        })
        .await
    }

    /// The spans of this trace, in the order in which they came.
    ///
    /// # Panics
    /// If they do not come.
    pub async fn of_trace(&self, id: &str) -> Vec<Span> {
        let is_of = |span: &&Span| hex(&span.trace_id) == id;
        eventually("the spans of the trace arrive", async || {
            let spans: Vec<_> = self.0.lock().unwrap().spans.iter().filter(is_of).cloned().collect();
            (!spans.is_empty()).then_some(spans)
        })
        .await
    }

    /// The paths of all requests whose spans have come.
    ///
    /// # Panics
    /// If another thread has panicked.
    pub fn paths(&self) -> Vec<String> {
        self.0.lock().unwrap().spans.iter().filter_map(|span| attribute(span, "url.path")).collect()
    }

    /// A field of the last message.
    ///
    /// # Panics
    /// If another thread has panicked.
    pub fn field(&self, name: &str) -> Option<String> {
        let received = self.0.lock().unwrap();
        received.headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
    }
}

/// An id of a trace or a span as text.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An attribute of a span as text.
pub fn attribute(span: &Span, key: &str) -> Option<String> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.clone()?.value? {
        Value::StringValue(text) => Some(text),
        Value::IntValue(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Accepts connections with TLS.
struct OverTls {
    listener: TcpListener,
    acceptor: TlsAcceptor,
}

impl Listener for OverTls {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            let Ok((stream, peer)) = self.listener.accept().await else { return pending().await };
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, peer);
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A real OpenTelemetry Collector to be started.
pub struct CollectorPlan {
    folder: TempDir,
    tls: &'static str,
}

/// A Collector that receives OTLP over HTTP.
///
/// # Panics
/// If its folder cannot be made.
pub fn collector() -> CollectorPlan {
    CollectorPlan { folder: tempfile::tempdir().unwrap(), tls: "" }
}

impl CollectorPlan {
    /// Receives over TLS, with `cert.pem` and `key.pem` of its folder.
    pub fn over_tls(mut self) -> Self {
        self.tls = "tls: { cert_file: cert.pem, key_file: key.pem }";
        self
    }

    /// The folder of its configuration file, for certificates.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Starts it. It sends everything on to this address, by OTLP over HTTP. `None` if it is not installed: a line about the skipped test
    /// has been printed.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(self, to: SocketAddr) -> Option<ServerProcess> {
        let (program, tls) = (otel_collector()?, self.tls);
        let port = held_port();
        let at = port.address();
        let config = format!(
            "receivers:\n  otlp: {{ protocols: {{ http: {{ endpoint: \"{at}\", {tls} }} }} }}\n\
             exporters:\n  otlp_http: {{ endpoint: \"http://{to}\", compression: none, sending_queue: {{ enabled: false }} }}\n\
             service:\n  pipelines: {{ traces: {{ receivers: [otlp], exporters: [otlp_http] }} }}\n"
        );
        std::fs::write(self.folder.path().join("collector.yaml"), config).unwrap();
        let started = ServerProcess::start("otel-collector", self.folder, port, move |_| {
            let mut command = Command::new(&program);
            command.args(["--config", "collector.yaml"]);
            command
        });
        Some(started.await)
    }
}
