//! Reserved ports.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketAddrV4, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

/// The distance from a node's port to the port for the other nodes of its cluster.
const CLUSTER: u16 = 10_000;

/// A port of this host that no other program gets while this exists, even while its server is down.
///
/// A socket is bound to the port and never listens. A server that sets `SO_REUSEADDR`, as all
/// servers here do, can still listen on it; but the system gives it neither to a program that asks
/// for any port, nor to an outgoing connection.
///
/// ```
/// use std::net::TcpListener;
/// use tollgate_redis_local::Port;
///
/// let port = Port::reserve();
/// // The standard library sets SO_REUSEADDR.
/// TcpListener::bind(("127.0.0.1", port.number())).expect("the port is reserved for this process");
/// ```
pub struct Port {
    number: u16,
    /// The sockets that are bound to the port and to the cluster's port.
    _sockets: [OwnedFd; 2],
}

impl Port {
    /// Reserves a port, and the cluster's port above it.
    ///
    /// # Panics
    ///
    /// Panics if no port is free.
    pub fn reserve() -> Port {
        loop {
            let (first, number) = bound(0).expect("there is a free port");
            let above = number.checked_add(CLUSTER).and_then(|above| bound(above).ok());
            if let Some((second, _)) = above {
                return Port { number, _sockets: [first, second] };
            }
        }
    }

    /// Returns the number of the port.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// Binds a socket to a port, or to any port for 0. Returns it with the number of the port.
fn bound(port: u16) -> rustix::io::Result<(OwnedFd, u16)> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A search for any port must not return one that is reserved, so `SO_REUSEADDR` is only set
    // afterwards.
    sockopt::set_socket_reuseaddr(&socket, port != 0)?;
    bind(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    let address = SocketAddr::try_from(getsockname(&socket)?)?;
    Ok((socket, address.port()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_server_can_listen_repeatedly_and_no_other_reservation_gets_the_port() {
        let port = Port::reserve();
        for _ in 0..3 {
            TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).expect_err("no server listens");
            // The standard library sets SO_REUSEADDR, as Redis does.
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port.number())).expect("it is ours");
            TcpStream::connect((Ipv4Addr::LOCALHOST, port.number())).expect("it listens");
            drop(listener);
        }
        let others: Vec<Port> = (0..200).map(|_| Port::reserve()).collect();
        assert!(others.iter().all(|other| other.number() != port.number()));
    }
}
