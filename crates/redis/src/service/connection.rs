//! Connection to the server that has the store: one for all calls.
//!
//! All keys of a store are in one slot, so in a cluster too there is one server to call. Any other server redirects to
//! it.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, IntoConnectionInfo, RedisConnectionInfo, Value,
};
use tollgate_store::Mutex;

use crate::ServerError;
use crate::url::{Deployment, RedisUrl};

type Node = (String, u16);

/// The connection, made on demand and dropped when it fails.
pub(crate) struct RedisConnection {
    url: RedisUrl,
    /// The root certificates, if they are not those of the web.
    #[cfg_attr(not(feature = "tls"), expect(dead_code, reason = "without TLS there are no certificates"))]
    roots: Option<Vec<u8>>,
    /// How long connecting may take.
    connect_timeout: Duration,
    current: Mutex<Option<Connected>>,
    /// The node of a cluster that has the slot, as of the last redirect.
    redirected: Mutex<Option<Node>>,
    /// A node of a cluster that the slot is being moved to.
    asked: Mutex<Option<(Node, MultiplexedConnection)>>,
    /// Held by the task that makes a connection, so that one is made and not many.
    making: tokio::sync::Mutex<()>,
    /// Counts the hosts that were tried.
    next_host: AtomicUsize,
}

/// A connection and its number.
#[derive(Clone)]
pub(crate) struct Connected {
    number: usize,
    connection: MultiplexedConnection,
}

impl RedisConnection {
    pub(crate) fn new(url: RedisUrl, roots: Option<Vec<u8>>, connect_timeout: Duration) -> RedisConnection {
        RedisConnection {
            url,
            roots,
            connect_timeout,
            current: Mutex::default(),
            redirected: Mutex::default(),
            asked: Mutex::default(),
            making: tokio::sync::Mutex::new(()),
            next_host: AtomicUsize::new(0),
        }
    }

    pub(crate) fn url(&self) -> &RedisUrl {
        &self.url
    }

    /// Sends a command once, to the server that is known; if that names another server, sends it there.
    ///
    /// # Cancel safety
    ///
    /// The command may be executed or not.
    pub(crate) async fn send(&self, command: &Cmd) -> Result<Value, ServerError> {
        let Connected { number, mut connection } = self.connected().await?;
        let answer = connection.send_packed_command(command).await.and_then(Value::extract_error);
        let error = match answer {
            Ok(value) => return Ok(value),
            Err(error) => ServerError::of(&error),
        };
        match &error {
            ServerError::Moved(_) | ServerError::Ask(_) if self.url.service != Deployment::Cluster => {
                let why = "it is a node of a cluster; write redis+cluster:// in the address";
                return Err(ServerError::Other(why.into()));
            }
            ServerError::Moved(node) => {
                *self.redirected.lock() = node_of(node, &self.url);
                self.drop_connection(number);
            }
            ServerError::Ask(node) => return self.ask(node, command).await,
            error if error.breaks() => {
                *self.redirected.lock() = None;
                self.drop_connection(number);
            }
            _ => {}
        }
        Err(error)
    }

    /// Drops the connection: its replies come too late.
    pub(crate) fn give_up(&self) {
        *self.current.lock() = None;
        *self.redirected.lock() = None;
        *self.asked.lock() = None;
    }

    fn drop_connection(&self, number: usize) {
        let mut current = self.current.lock();
        if current.as_ref().is_some_and(|it| it.number == number) {
            *current = None;
        }
    }

    /// Returns the connection, and makes it if it is missing.
    pub(crate) async fn connected(&self) -> Result<Connected, ServerError> {
        if let Some(connected) = self.current.lock().clone() {
            return Ok(connected);
        }
        let _making = self.making.lock().await;
        if let Some(connected) = self.current.lock().clone() {
            return Ok(connected);
        }
        let redirected = self.redirected.lock().clone();
        let number = self.next_host.fetch_add(1, Ordering::Relaxed);
        let made = match (&self.url.service, redirected) {
            (Deployment::Sentinel(master), _) => self.master(master, number).await,
            (_, Some(node)) => self.connect(&node).await,
            (_, None) => self.connect(&self.url.hosts[number % self.url.hosts.len()]).await,
        };
        let connection = made.inspect_err(|_| *self.redirected.lock() = None)?;
        let connected = Connected { number, connection };
        *self.current.lock() = Some(connected.clone());
        Ok(connected)
    }

    /// Connects to the master that the sentinels name.
    async fn master(&self, name: &str, number: usize) -> Result<MultiplexedConnection, ServerError> {
        let sentinel = &self.url.hosts[number % self.url.hosts.len()];
        let password = self.url.sentinel_password.as_deref();
        let settings = password.map_or_else(RedisConnectionInfo::default, |password| {
            RedisConnectionInfo::default().set_password(password)
        });
        let mut connection = self.connect_with(sentinel, settings).await?;
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(name);
        let answer: Option<(String, u16)> =
            ask.query_async(&mut connection).await.map_err(|why| ServerError::of(&why))?;
        let Some(node) = answer else {
            return Err(ServerError::Busy(format!(
                "the sentinel {} knows no master {name:?}",
                shown(sentinel)
            )));
        };
        self.connect(&node).await
    }

    async fn connect(&self, node: &Node) -> Result<MultiplexedConnection, ServerError> {
        let mut settings = RedisConnectionInfo::default().set_db(self.url.database);
        if let Some(user) = &self.url.user {
            settings = settings.set_username(user);
        }
        if let Some(password) = &self.url.password {
            settings = settings.set_password(password);
        }
        self.connect_with(node, settings).await
    }

    async fn connect_with(
        &self,
        node: &Node,
        settings: RedisConnectionInfo,
    ) -> Result<MultiplexedConnection, ServerError> {
        let (host, port) = node.clone();
        let address = match self.url.is_encrypted {
            true => ConnectionAddr::TcpTls { host, port, insecure: false, tls_params: None },
            false => ConnectionAddr::Tcp(host, port),
        };
        let of = |error: redis::RedisError| match ServerError::of(&error) {
            ServerError::Lost(why) => ServerError::NoConnection(shown(node), why),
            error => error,
        };
        // The name of the library would cost a command on every connection.
        let settings = settings.set_skip_set_lib_name();
        let info = address.into_connection_info().map_err(of)?.set_redis_settings(settings);
        let client = self.client(info).map_err(of)?;
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect_timeout))
            .set_response_timeout(None);
        client.get_multiplexed_async_connection_with_config(&config).await.map_err(of)
    }

    #[cfg(feature = "tls")]
    fn client(&self, info: redis::ConnectionInfo) -> redis::RedisResult<Client> {
        match self.url.is_encrypted {
            true => {
                let certificates = redis::TlsCertificates { client_tls: None, root_cert: self.roots.clone() };
                Client::build_with_tls(info, certificates)
            }
            false => Client::open(info),
        }
    }

    #[cfg(not(feature = "tls"))]
    fn client(&self, info: redis::ConnectionInfo) -> redis::RedisResult<Client> {
        Client::open(info)
    }

    /// Sends one command to the node that the slot is being moved to.
    async fn ask(&self, node: &str, command: &Cmd) -> Result<Value, ServerError> {
        let Some(node) = node_of(node, &self.url) else {
            return Err(ServerError::Busy("a slot is moving to an unknown node".into()));
        };
        let known = self.asked.lock().clone().filter(|(there, _)| *there == node);
        let mut connection = match known {
            Some((_, connection)) => connection,
            None => {
                let connection = self.connect(&node).await?;
                *self.asked.lock() = Some((node, connection.clone()));
                connection
            }
        };
        let mut pipeline = redis::pipe();
        pipeline.cmd("ASKING").ignore().add_command(command.clone());
        let answers = connection.send_packed_commands(&pipeline, 0, 2).await;
        let last = answers.and_then(|mut answers| answers.pop().unwrap_or(Value::Nil).extract_error());
        last.map_err(|error| {
            let error = ServerError::of(&error);
            if error.breaks() {
                *self.asked.lock() = None;
            }
            error
        })
    }
}

fn shown((host, port): &Node) -> String {
    format!("{host}:{port}")
}

/// Parses the node of a redirect; without a host it is one of the address.
fn node_of(text: &str, url: &RedisUrl) -> Option<Node> {
    let (host, port) = text.rsplit_once(':')?;
    let host = if host.is_empty() || host == "?" { url.hosts.first()?.0.as_str() } else { host };
    Some((host.trim_matches(['[', ']']).to_owned(), port.parse().ok()?))
}
