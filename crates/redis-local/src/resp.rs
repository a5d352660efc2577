//! A minimal client of the RESP protocol.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// The timeout of a reply.
const TIMEOUT: Duration = Duration::from_secs(20);

/// A connection to a server.
///
/// ```no_run
/// use tollgate_redis_local::{Client, RespReply, Server, ServerKind};
///
/// let server = Server::start(ServerKind::Valkey);
/// let mut client = Client::connect(server.port());
/// assert_eq!(client.command(&["PING"]), RespReply::Text("PONG".into()));
/// ```
pub struct Client(BufReader<TcpStream>);

/// A server's reply.
///
/// ```
/// use tollgate_redis_local::RespReply;
///
/// let info = RespReply::Text("role:master\r\nconnected_slaves:0\r\n".into());
/// assert_eq!(info.field("role"), Some("master"));
/// assert_eq!(RespReply::Bytes(vec![0xFF]).bytes(), [0xFF]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RespReply {
    /// Text.
    Text(String),
    /// Bytes that are not UTF-8.
    Bytes(Vec<u8>),
    /// A number.
    Number(i64),
    /// An error.
    Error(String),
    /// Null.
    Null,
    /// An array.
    List(Vec<RespReply>),
}

impl RespReply {
    /// Returns true if the server is up: it replies, possibly that it requires a password.
    pub(crate) fn is_up(&self) -> bool {
        match self {
            RespReply::Error(error) => !error.starts_with("LOADING"),
            _ => true,
        }
    }

    /// Returns the text.
    ///
    /// # Panics
    ///
    /// Panics if the reply is not text.
    pub fn text(&self) -> &str {
        match self {
            RespReply::Text(text) => text,
            other => panic!("the server replied {other:?}"),
        }
    }

    /// Returns text or bytes.
    ///
    /// # Panics
    ///
    /// Panics if the reply is neither.
    pub fn bytes(&self) -> &[u8] {
        match self {
            RespReply::Bytes(bytes) => bytes,
            other => other.text().as_bytes(),
        }
    }

    /// Returns a field of the reply to `INFO`.
    pub fn field(&self, name: &str) -> Option<&str> {
        let lines = self.text().lines().filter_map(|line| line.split_once(':'));
        lines.into_iter().find(|(field, _)| *field == name).map(|(_, value)| value)
    }
}

impl Client {
    /// Connects to a port of this host.
    ///
    /// # Panics
    ///
    /// Panics if no server listens.
    pub fn connect(port: u16) -> Client {
        Client::try_connect(port).expect("the server listens")
    }

    pub(crate) fn try_connect(port: u16) -> io::Result<Client> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        Ok(Client(BufReader::new(stream)))
    }

    /// Sends a command and waits for the reply.
    ///
    /// # Panics
    ///
    /// Panics if there is no reply.
    pub fn command(&mut self, words: &[&str]) -> RespReply {
        self.try_command(words).unwrap_or_else(|why| panic!("no reply to {words:?}: {why}"))
    }

    pub(crate) fn try_command(&mut self, words: &[&str]) -> io::Result<RespReply> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.try_command_bytes(&words)
    }

    /// Sends a command like [`command`](Client::command), with arguments that need not be text.
    ///
    /// # Panics
    ///
    /// Panics if there is no reply.
    pub fn command_bytes(&mut self, words: &[&[u8]]) -> RespReply {
        self.try_command_bytes(words).unwrap_or_else(|why| panic!("no reply: {why}"))
    }

    fn try_command_bytes(&mut self, words: &[&[u8]]) -> io::Result<RespReply> {
        let mut line = format!("*{}\r\n", words.len()).into_bytes();
        for word in words {
            line.extend(format!("${}\r\n", word.len()).as_bytes());
            line.extend_from_slice(word);
            line.extend(b"\r\n");
        }
        self.0.get_mut().write_all(&line)?;
        self.read()
    }

    fn read(&mut self) -> io::Result<RespReply> {
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        let line = line.trim_end();
        let (kind, rest) = line.split_at_checked(1).ok_or(io::ErrorKind::UnexpectedEof)?;
        let number = || rest.parse::<i64>().map_err(|_| io::Error::from(io::ErrorKind::InvalidData));
        match kind {
            "+" => Ok(RespReply::Text(rest.into())),
            "-" => Ok(RespReply::Error(rest.into())),
            ":" => number().map(RespReply::Number),
            "$" | "*" if number()? < 0 => Ok(RespReply::Null),
            "$" => {
                let mut bytes = vec![0; number()? as usize + 2];
                self.0.read_exact(&mut bytes)?;
                bytes.truncate(bytes.len() - 2);
                Ok(match String::from_utf8(bytes) {
                    Ok(text) => RespReply::Text(text),
                    Err(error) => RespReply::Bytes(error.into_bytes()),
                })
            }
            "*" => (0..number()?).map(|_| self.read()).collect::<io::Result<_>>().map(RespReply::List),
            _ => Err(io::ErrorKind::InvalidData.into()),
        }
    }
}

/// Returns the length of the first reply in these bytes, if it is complete.
pub(crate) fn answer_len(bytes: &[u8]) -> Option<usize> {
    let end = bytes.windows(2).position(|pair| pair == b"\r\n")? + 2;
    let number = || str::from_utf8(&bytes[1..end - 2]).ok().and_then(|text| text.parse::<i64>().ok());
    match bytes[0] {
        b'$' => {
            let len = usize::try_from(number()?).map_or(end, |len| end + len + 2);
            (bytes.len() >= len).then_some(len)
        }
        b'*' => {
            let count = number()?.max(0);
            (0..count).try_fold(end, |at, _| Some(at + answer_len(bytes.get(at..)?)?))
        }
        _ => Some(end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_a_reply_is_found_once_it_is_complete() {
        let whole: [&[u8]; 6] =
            [b"+OK\r\n", b":12\r\n", b"$-1\r\n", b"$3\r\na\r\n\r\n", b"*2\r\n:1\r\n$1\r\nx\r\n", b"*0\r\n"];
        for answer in whole {
            assert_eq!(answer_len(&[answer, b"+more\r\n"].concat()), Some(answer.len()));
            for len in 0..answer.len() {
                assert_eq!(answer_len(&answer[..len]), None, "{answer:?}");
            }
        }
    }
}
