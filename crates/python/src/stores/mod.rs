//! Stores, opened by their URLs. A process has one handle for each store, which all sets and limiters in it share.

mod anonymous;
mod error;
mod helper;

pub(crate) use anonymous::_remove_anonymous_stores;
pub(crate) use error::StoreOpenError;

use std::collections::HashMap;
use std::path;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use pyo3::prelude::*;
use tollgate::store::{Backend, PerProcess};
use tollgate_open::{OpenOptions, StoreUrl};
use tollgate_store::{Mutex, generation};

use crate::error::invalid;

/// Settings of a store that its URL does not have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct StoreOptions {
    /// How long a call to the store may take.
    pub(crate) timeout: Option<Duration>,
    /// For how long opening is retried while the server accepts no connection.
    pub(crate) connect_within: Option<Duration>,
}

/// The address of a store: what a pickle of its users has.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct StoreAddress {
    url: StoreUrl,
    options: StoreOptions,
}

/// An open store, and its address. It is closed with its last user.
#[derive(Clone)]
pub(crate) struct OpenedStore {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) address: StoreAddress,
}

/// The handles of this process. Those of a forked child begin as its parent's: a store reconnects by itself in a child.
type Handles = HashMap<(String, StoreOptions), Weak<dyn Backend>>;

impl StoreOptions {
    fn to_open_options(self) -> OpenOptions {
        let mut options = OpenOptions::default();
        if let Some(timeout) = self.timeout {
            options = options.timeout(timeout);
        }
        if let Some(time) = self.connect_within {
            options = options.connect_within(time);
        }
        options
    }
}

impl StoreAddress {
    /// Parses the URL of a store. `shm:` is a new anonymous store in shared memory.
    ///
    /// # Errors
    ///
    /// `InvalidValue`, without the URL, which may have a password.
    pub(crate) fn parse(py: Python<'_>, url: &str, options: StoreOptions) -> PyResult<StoreAddress> {
        if url.contains('\0') {
            return Err(invalid(py, "store: a URL has no NUL in it"));
        }
        if url == "shm:" {
            return anonymous::make(py, options);
        }
        let parsed = url.parse().map_err(|why| invalid(py, format!("store: {why}")))?;
        let url = match parsed {
            // Another process may have another working directory.
            StoreUrl::File(file) => StoreUrl::File(path::absolute(&file).unwrap_or(file)),
            url => url,
        };
        Ok(StoreAddress { url, options })
    }

    /// Returns the URL without its password.
    pub(crate) fn redacted(&self) -> String {
        self.url.to_string()
    }

    /// Returns the URL with its password, for a pickle.
    pub(crate) fn with_password(&self) -> String {
        self.url.with_password()
    }

    /// Returns whether it is the memory of this process, which no other process can open.
    pub(crate) fn is_memory(&self) -> bool {
        self.url == StoreUrl::Memory
    }

    /// Opens the store, or finds the handle that is open.
    ///
    /// # Cancel safety
    ///
    /// A file, shared memory or a table may have been created.
    pub(crate) async fn open(self) -> Result<OpenedStore, StoreOpenError> {
        if let Some(backend) = self.handle() {
            return Ok(OpenedStore { backend, address: self });
        }
        anonymous::check(&self.url)?;
        let (url, options) = (self.url.clone(), self.options.to_open_options());
        let opened = match self.url {
            // It is opened in the thread that asks, which may take as long as another process has it locked.
            StoreUrl::File(_) => helper::run(move || url.open(&options).wait()).await,
            _ => url.open(&options).await,
        };
        let backend = self.register(opened?);
        Ok(OpenedStore { backend, address: self })
    }

    fn handle(&self) -> Option<Arc<dyn Backend>> {
        if self.is_memory() {
            return None;
        }
        handles().lock().get(&self.key()).and_then(Weak::upgrade)
    }

    /// Returns the handle to use from now on: of threads that opened the store at once, all use the first one's.
    fn register(&self, backend: Arc<dyn Backend>) -> Arc<dyn Backend> {
        if self.is_memory() {
            return backend;
        }
        let mut handles = handles().lock();
        handles.retain(|_, handle| handle.strong_count() > 0);
        let first = handles.get(&self.key()).and_then(Weak::upgrade);
        if first.is_none() {
            handles.insert(self.key(), Arc::downgrade(&backend));
        }
        // Another handle is closed out of the lock.
        drop(handles);
        first.unwrap_or(backend)
    }

    fn key(&self) -> (String, StoreOptions) {
        (self.with_password(), self.options)
    }
}

fn handles() -> &'static Mutex<Handles> {
    static HANDLES: OnceLock<PerProcess<Mutex<Handles>>> = OnceLock::new();
    let process = generation().into();
    HANDLES.get_or_init(|| PerProcess::new(process)).get_or(process, |parent| {
        // A thread of the parent may have had the lock: then the child opens its stores anew.
        Mutex::new(parent.try_lock().map(|handles| handles.clone()).unwrap_or_default())
    })
}
