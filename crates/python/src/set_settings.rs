//! The keywords of a limit set: read, checked, and kept for its pickle.

use std::sync::Arc;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyString};
use tollgate::{LimitSet, LimitSetBuilder, OnDrop, OnUnavailable};

use crate::amount::{seconds, shown, span, text};
use crate::clock::PyManualClock;
use crate::error::{OrRaise, invalid};
use crate::limit::limits_of;
use crate::observing::ObserverTarget;
use crate::stores::{OpenedStore, StoreAddress, StoreOptions};

/// The name of a set in an anonymous store, which no other set is in.
const ANONYMOUS_NAME: &str = "limits";

/// A set, and what belongs to its object.
pub(crate) struct BuiltSet {
    pub(crate) set: LimitSet,
    pub(crate) config: Py<PyDict>,
    pub(crate) observer: Option<Arc<ObserverTarget>>,
    pub(crate) stored: Option<StoredPlace>,
}

/// What a set is built with.
pub(crate) struct SetSettings {
    builder: LimitSetBuilder,
    config: Py<PyDict>,
    observer: Option<Arc<ObserverTarget>>,
    pub(crate) address: Option<StoreAddress>,
    /// The keywords that a pickle has, except for the store and the config.
    given: Py<PyDict>,
}

/// Where a set in a store is, and the settings that it is pickled with.
pub(crate) struct StoredPlace {
    pub(crate) address: StoreAddress,
    pub(crate) given: Py<PyDict>,
}

impl SetSettings {
    /// Reads the keywords of a set.
    ///
    /// # Errors
    ///
    /// `InvalidValue` for one that is not valid, `TypeError` for one that there is not.
    pub(crate) fn of(
        limits: &Bound<'_, PyAny>,
        keywords: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<SetSettings> {
        let py = limits.py();
        let mut reader = Reader {
            builder: LimitSet::builder().limits(limits_of(limits)?),
            name: None,
            url: None,
            config: None,
            observer: None,
            clock: false,
            options: StoreOptions::default(),
        };
        let given = PyDict::new(py);
        // A copy: reading a value may run code of the caller.
        let keywords =
            keywords.map(|keywords| keywords.copy()).transpose()?.unwrap_or_else(|| PyDict::new(py));
        for (key, value) in keywords.iter() {
            let key = key.extract::<String>()?;
            if value.is_none() {
                continue;
            }
            reader.read(&key, &value)?;
            if !["store", "config", "observer", "clock"].contains(&key.as_str()) {
                given.set_item(key, value)?;
            }
        }
        reader.finish(py, given)
    }

    /// Builds the set, in its store if it has one.
    ///
    /// # Errors
    ///
    /// `InvalidValue`.
    pub(crate) fn build(self, py: Python<'_>, store: Option<OpenedStore>) -> PyResult<BuiltSet> {
        let (mut builder, mut place) = (self.builder, None);
        if let Some(store) = store {
            builder = builder.store(store.backend);
            place = Some(StoredPlace { address: store.address, given: self.given });
        }
        if let Some(observer) = &self.observer {
            builder = builder.observer(observer.watch());
        }
        let set = builder.build().or_raise(py)?;
        Ok(BuiltSet { set, config: self.config, observer: self.observer, stored: place })
    }
}

struct Reader {
    builder: LimitSetBuilder,
    name: Option<String>,
    url: Option<String>,
    config: Option<Py<PyDict>>,
    observer: Option<Arc<ObserverTarget>>,
    clock: bool,
    options: StoreOptions,
}

impl Reader {
    fn read(&mut self, key: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let builder = std::mem::take(&mut self.builder);
        self.builder = match key {
            "store" => {
                self.url = Some(text_of(key, value)?);
                builder
            }
            "name" => {
                let name = name_of(key, value)?;
                self.name = Some(name.clone());
                builder.name(name)
            }
            "namespace" => builder.namespace(name_of(key, value)?),
            "config" => {
                let config = value.cast::<PyDict>().map_err(|_| wrong(key, value, "a dict"))?;
                self.config = Some(config.copy()?.unbind());
                builder
            }
            "skip_unknown" => {
                if truth(key, value)? {
                    builder.skip_unknown()
                } else {
                    builder
                }
            }
            "on_drop" => builder.on_drop(match text_of(key, value)?.as_str() {
                "keep" => OnDrop::Keep,
                "refund" => OnDrop::Refund,
                _ => return Err(wrong(key, value, "\"keep\" or \"refund\"")),
            }),
            "on_unavailable" => builder.on_unavailable(match text_of(key, value)?.as_str() {
                "block" => OnUnavailable::Block,
                "allow" => OnUnavailable::Allow,
                "local" => OnUnavailable::Local,
                _ => return Err(wrong(key, value, "\"block\", \"allow\" or \"local\"")),
            }),
            "lease_ttl" => builder.lease_ttl(span(key, value)?),
            "waiters_max" => builder.waiters_max(whole(key, value, 0, 1 << 48)? as usize),
            "version" => builder.version(whole(key, value, 1, LimitSetBuilder::VERSION_MAX.into())? as u16),
            "local_share" => builder.local_share(whole(key, value, 1, 100)? as u8),
            "without" => texts(key, value)?.into_iter().fold(builder, LimitSetBuilder::without),
            "store_timeout" => {
                let timeout = seconds(key, value)?.filter(|timeout| !timeout.is_zero());
                let timeout =
                    timeout.ok_or_else(|| wrong(key, value, "more than 0 seconds, and not for ever"))?;
                self.options.timeout = Some(timeout);
                builder.store_timeout(timeout)
            }
            "connect_within" => {
                self.options.connect_within = Some(span(key, value)?);
                builder
            }
            "observer" => {
                self.observer = Some(Arc::new(ObserverTarget::of(value)?));
                builder
            }
            "clock" => {
                let clock = value.cast::<PyManualClock>();
                let clock = clock.map_err(|_| wrong(key, value, "a tollgate.testing.ManualClock"))?;
                self.clock = true;
                builder.clock(clock.get().clock())
            }
            _ => {
                let text = format!("LimitSet() got an unexpected keyword argument {key:?}");
                return Err(PyTypeError::new_err(text));
            }
        };
        let _ = py;
        Ok(())
    }

    fn finish(mut self, py: Python<'_>, given: Bound<'_, PyDict>) -> PyResult<SetSettings> {
        let mut address = None;
        if let Some(url) = &self.url {
            if self.clock {
                return Err(invalid(py, "clock: a set in a store goes by the clock of its store"));
            }
            if self.name.is_none() && url == "shm:" {
                self.builder = self.builder.name(ANONYMOUS_NAME);
                given.set_item("name", ANONYMOUS_NAME)?;
            } else if self.name.is_none() {
                return Err(invalid(
                    py,
                    "name: a set in a store needs one, which all that share it give: name=\"openai/blue\"",
                ));
            }
            // Limits that are not valid are refused before anything is opened or made.
            self.builder.clone().name("checked").build().or_raise(py)?;
            address = Some(StoreAddress::parse(py, url, self.options)?);
        }
        if let Some(observer) = &self.observer {
            observer.set_name(self.name.clone());
        }
        Ok(SetSettings {
            builder: self.builder,
            config: self.config.unwrap_or_else(|| PyDict::new(py).unbind()),
            observer: self.observer,
            address,
            given: given.unbind(),
        })
    }
}

/// Returns the error of a setting that is not what it must be. It does not show the URL of a store, which may have a password.
fn wrong(what: &str, value: &Bound<'_, PyAny>, must: &str) -> PyErr {
    let shown = if what == "store" { "no URL".into() } else { shown(value) };
    invalid(value.py(), format!("{what} is {shown}, but must be {must}"))
}

fn text_of(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let text_value = value.cast::<PyString>().map_err(|_| wrong(what, value, "a text"))?;
    match text_value.to_str() {
        Ok(text) => Ok(text.to_owned()),
        Err(_) if what == "store" => Err(invalid(value.py(), "store: the URL is not valid Unicode")),
        Err(_) => text(what, text_value).map(str::to_owned),
    }
}

/// The longest name of a set and of its namespace, in bytes: what every store takes.
const NAME_MAX: usize = 256;

fn name_of(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let name = text_of(what, value)?;
    if name.is_empty() || name.len() > NAME_MAX || name.contains('\0') {
        return Err(wrong(what, value, &format!("1 to {NAME_MAX} bytes of text without NUL")));
    }
    Ok(name)
}

fn texts(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    if value.is_instance_of::<PyString>() {
        return Err(wrong(what, value, "a list of names"));
    }
    let items = value.try_iter().map_err(|_| wrong(what, value, "a list of names"))?;
    items.map(|item| text_of(what, &item?)).collect()
}

fn truth(what: &str, value: &Bound<'_, PyAny>) -> PyResult<bool> {
    let truth = value.cast::<PyBool>().map_err(|_| wrong(what, value, "True or False"))?;
    Ok(truth.is_true())
}

/// Returns a whole number between two others, which both may be. Numbers of other libraries count too; a bool does not.
///
/// # Errors
///
/// `InvalidValue`.
pub(crate) fn whole(what: &str, value: &Bound<'_, PyAny>, least: u64, most: u64) -> PyResult<u64> {
    let number = if value.is_instance_of::<PyBool>() { None } else { value.extract::<u64>().ok() };
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| wrong(what, value, &format!("a whole number from {least} to {most}")))
}
