//! Routing: method and path of a request.

use hyper::Method;

/// The route of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MockRoute {
    Call(Endpoint),
    Stats,
    Health,
    /// The path is known, but not with this method.
    WrongMethod,
    Unknown,
}

/// The endpoint of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Responses,
    Embeddings,
    Messages,
}

impl MockRoute {
    pub(crate) fn of(method: &Method, path: &str) -> MockRoute {
        const CALLS: [(&str, Endpoint); 4] = [
            ("/chat/completions", Endpoint::Chat),
            ("/responses", Endpoint::Responses),
            ("/embeddings", Endpoint::Embeddings),
            ("/messages", Endpoint::Messages),
        ];
        let path = path.trim_end_matches('/');
        let (route, expected) = match CALLS.iter().find(|(end, _)| path.ends_with(end)) {
            Some((_, endpoint)) => (MockRoute::Call(*endpoint), Method::POST),
            None if path == "/stats" => (MockRoute::Stats, Method::GET),
            None if path == "/healthz" => (MockRoute::Health, Method::GET),
            None => return MockRoute::Unknown,
        };
        if *method == expected { route } else { MockRoute::WrongMethod }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_providers_and_of_azure_are_routed() {
        let post = |path| MockRoute::of(&Method::POST, path);
        assert_eq!(post("/v1/chat/completions"), MockRoute::Call(Endpoint::Chat));
        assert_eq!(post("/openai/deployments/x/chat/completions"), MockRoute::Call(Endpoint::Chat));
        assert_eq!(post("/v1/messages/"), MockRoute::Call(Endpoint::Messages));
        assert_eq!(post("/v1/models"), MockRoute::Unknown);
        assert_eq!(post("/stats"), MockRoute::WrongMethod);
        assert_eq!(MockRoute::of(&Method::GET, "/stats"), MockRoute::Stats);
        assert_eq!(MockRoute::of(&Method::GET, "/v1/messages"), MockRoute::WrongMethod);
    }
}
