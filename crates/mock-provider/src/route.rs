//! Which request is which.

use hyper::Method;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Call(Endpoint),
    Stats,
    Health,
    /// The path is known, the method is another.
    WrongMethod,
    Unknown,
}

/// What is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Chat,
    Responses,
    Embeddings,
    Messages,
}

impl Route {
    pub(crate) fn of(method: &Method, path: &str) -> Route {
        const CALLS: [(&str, Endpoint); 4] = [
            ("/chat/completions", Endpoint::Chat),
            ("/responses", Endpoint::Responses),
            ("/embeddings", Endpoint::Embeddings),
            ("/messages", Endpoint::Messages),
        ];
        let path = path.trim_end_matches('/');
        let (route, wanted) = match CALLS.iter().find(|(end, _)| path.ends_with(end)) {
            Some((_, endpoint)) => (Route::Call(*endpoint), Method::POST),
            None if path == "/stats" => (Route::Stats, Method::GET),
            None if path == "/healthz" => (Route::Health, Method::GET),
            None => return Route::Unknown,
        };
        if *method == wanted { route } else { Route::WrongMethod }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_providers_and_of_azure_are_known() {
        let post = |path| Route::of(&Method::POST, path);
        assert_eq!(post("/v1/chat/completions"), Route::Call(Endpoint::Chat));
        assert_eq!(post("/openai/deployments/x/chat/completions"), Route::Call(Endpoint::Chat));
        assert_eq!(post("/v1/messages/"), Route::Call(Endpoint::Messages));
        assert_eq!(post("/v1/models"), Route::Unknown);
        assert_eq!(post("/stats"), Route::WrongMethod);
        assert_eq!(Route::of(&Method::GET, "/stats"), Route::Stats);
        assert_eq!(Route::of(&Method::GET, "/v1/messages"), Route::WrongMethod);
    }
}
