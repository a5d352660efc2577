//! A port that stays ours.

use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{
    AddressFamily, SocketAddrV4, SocketFlags, SocketType, bind, getsockname, socket_with, sockopt,
};

/// How far above its own port a node of a cluster listens for the other nodes.
const CLUSTER: u16 = 10_000;

/// A port of this host on which no other program listens as long as this lives, also while the server that belongs there is down.
///
/// A socket is bound to it that never listens. A server that sets `SO_REUSEADDR`, as all do here, may listen on it all the same;
/// but the system gives it to no program that asks for any port, nor to a connection that goes out.
pub struct Port {
    number: u16,
    /// Bound to it, and to the one of the cluster.
    _sockets: [OwnedFd; 2],
}

impl Port {
    /// Reserves one, and that of the cluster above it.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub fn reserve() -> Port {
        loop {
            let (first, number) = bound(0).expect("there is a free port");
            let above = number.checked_add(CLUSTER).and_then(|above| bound(above).ok());
            if let Some((second, _)) = above {
                return Port { number, _sockets: [first, second] };
            }
        }
    }

    /// Its number.
    pub fn number(&self) -> u16 {
        self.number
    }
}

/// A socket that is bound to a port, 0 for any, and the number of the port.
fn bound(port: u16) -> rustix::io::Result<(OwnedFd, u16)> {
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A program that asks for any port must not get one that another has reserved.
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
    fn a_server_may_listen_on_it_again_and_again_and_nobody_else_gets_it() {
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
