//! What every command has at hand: the settings, the store and the people at the terminal.

use std::cell::{OnceCell, RefCell};
use std::fmt::Display;
use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use tollgate::catalog::{CatalogError, Namespace, RegistryBuilder};
use tollgate::limiter::{DEFAULT_NAMESPACE, LimiterBuilder};
use tollgate::store::Backend;
use tollgate::{Catalog, Limiter, Memory, OnDrop, Registry};

use crate::args::GlobalArgs;
use crate::output::{Answer, Format, ProgressLine, Terminal, TextPage, told};
use crate::settings::{CliSettings, Setting, SettingSource};
use crate::store::{DryRunStore, can_be_there, is_there, not_there, open_store};

/// What every command has at hand. The store is opened when it is first asked for.
pub(crate) struct Context {
    /// The settings.
    pub(crate) settings: CliSettings,
    /// What is at the other end of the streams.
    pub(crate) terminal: Terminal,
    /// Who reads the answer.
    pub(crate) format: Format,
    /// Whether changes are only rehearsed.
    pub(crate) dry_run: bool,
    /// Whether nothing is to be asked.
    pub(crate) yes: bool,
    quiet: bool,
    afterwards: RefCell<Vec<String>>,
    store: OnceCell<Arc<dyn Backend>>,
    /// Stands in for a store that is not there.
    empty: OnceCell<Arc<dyn Backend>>,
    rehearsal: OnceCell<Arc<dyn Backend>>,
}

impl Context {
    /// One with these settings.
    pub(crate) fn new(settings: CliSettings, terminal: Terminal, flags: &GlobalArgs) -> Context {
        let format = if flags.json { Format::Json } else { Format::Text };
        Context {
            settings,
            terminal,
            format,
            dry_run: flags.dry_run,
            yes: flags.yes,
            quiet: flags.quiet,
            afterwards: RefCell::default(),
            store: OnceCell::new(),
            empty: OnceCell::new(),
            rehearsal: OnceCell::new(),
        }
    }

    /// The store, to read from it, or to write to it what is no change: a lease, say. A command that only reads makes
    /// no file, nor does a dry run: a store that is not there is as an empty one.
    pub(crate) fn store(&self) -> Result<Arc<dyn Backend>> {
        if self.store.get().is_some() || is_there(&self.settings)? || !can_be_there(&self.settings)? {
            return self.store_to_change();
        }
        Ok(Arc::clone(self.empty.get_or_init(|| Arc::new(Memory::default()))))
    }

    /// Returns the store to read from. That the default one is not there is no news; a named one may be a slip.
    pub(crate) fn store_to_read(&self) -> Result<Arc<dyn Backend>> {
        let (store, is_new) = (self.store()?, self.store.get().is_none());
        let Setting { value, source } = self.settings.store()?;
        if is_new && *source != SettingSource::Default {
            self.note(format_args!("the store {value} is not there yet"));
        }
        Ok(store)
    }

    /// The store, to change something in it: it is made if it is not there.
    pub(crate) fn store_to_change(&self) -> Result<Arc<dyn Backend>> {
        if let Some(store) = self.store.get() {
            return Ok(Arc::clone(store));
        }
        let store = open_store(&self.settings)?;
        Ok(Arc::clone(self.store.get_or_init(|| store)))
    }

    /// The store, to change something in it that is no record of a namespace; in a dry run, a rehearsal on it.
    pub(crate) fn backend_to_change(&self) -> Result<Arc<dyn Backend>> {
        if self.dry_run { self.rehearsal() } else { self.store_to_change() }
    }

    /// Fails if there is no such store: for commands about the store itself.
    ///
    /// # Errors
    ///
    /// [`OpenFailed`](crate::store::OpenFailed).
    pub(crate) fn must_be_there(&self) -> Result<()> {
        if is_there(&self.settings)? { Ok(()) } else { Err(not_there(&self.settings)?.into()) }
    }

    /// The namespaces of the store, to read or change them; none if it is not there, and then it is not made.
    pub(crate) fn registry_if_there(&self) -> Result<Registry> {
        self.registry_on(if self.dry_run { self.rehearsal()? } else { self.store_to_read()? })
    }

    /// The namespaces of the store, which is made if it is not there, unless this is a dry run.
    pub(crate) fn registry(&self) -> Result<Registry> {
        self.registry_on(if self.dry_run { self.rehearsal()? } else { self.store_to_change()? })
    }

    /// The namespace of the store that gave out a ticket, deleted or not.
    pub(crate) fn namespace_of(&self, ticket: &str) -> Result<Option<Namespace>> {
        Ok(self.registry_on(self.store()?)?.namespace_of_token(ticket.trim()).wait()?)
    }

    /// The namespace of the settings, to read from it. The default one need not be registered: then it is empty.
    pub(crate) fn catalog(&self) -> Result<Catalog> {
        let name = &self.settings.namespace.value;
        match self.registry_on(self.store_to_read()?)?.open(name).wait() {
            Err(CatalogError::NamespaceNotFound(_)) if name == DEFAULT_NAMESPACE => self.rehearsed(),
            other => Ok(other?),
        }
    }

    /// Makes a change to the namespace of the settings, which is registered first if need be. In a dry run, and if the
    /// namespace is new, the change is rehearsed before: so one that fails leaves not even the namespace behind.
    pub(crate) fn change<T>(&self, change: impl Fn(&Catalog) -> Result<T>) -> Result<T> {
        let registry = self.registry_on(self.store()?)?;
        let name = &self.settings.namespace.value;
        let is_new = registry.get(name).wait()?.is_none();
        let rehearsed = (is_new || self.dry_run).then(|| change(&self.rehearsed()?)).transpose()?;
        if is_new {
            self.note_registered(name);
        }
        match rehearsed {
            Some(rehearsed) if self.dry_run => Ok(rehearsed),
            _ => change(&self.registry_on(self.store_to_change()?)?.open_or_register(name).wait()?),
        }
    }

    /// Makes a change to the namespace of the settings that was [rehearsed](Context::rehearse) before.
    pub(crate) fn change_as_rehearsed<T>(&self, change: impl FnOnce(&Catalog) -> Result<T>) -> Result<T> {
        let registry = self.registry_on(self.store()?)?;
        let name = &self.settings.namespace.value;
        if registry.get(name).wait()?.is_none() {
            self.note_registered(name);
        }
        change(&self.registry_on(self.store_to_change()?)?.open_or_register(name).wait()?)
    }

    /// That the default one is registered is no news; another name may be a slip.
    fn note_registered(&self, name: &str) {
        if name != DEFAULT_NAMESPACE {
            let deed = if self.dry_run { "would be" } else { "was" };
            self.note_afterwards(format_args!("namespace {name} {deed} registered for it"));
        }
    }

    /// Rehearses a change and makes none: for a change of several steps, a later one of which may turn out to be
    /// impossible.
    pub(crate) fn rehearse<T>(&self, change: impl FnOnce(&Catalog) -> Result<T>) -> Result<T> {
        let registry = self.registry_on(Arc::new(DryRunStore::on(self.store()?)))?;
        change(&registry.open_or_register(&self.settings.namespace.value).wait()?)
    }

    /// Shows people on stderr what they are about to be asked about.
    pub(crate) fn show(&self, answer: &impl Answer) -> Result<()> {
        if !self.yes && self.terminal.can_ask {
            let mut page = TextPage::new(self.terminal.width);
            answer.text(&mut page);
            writeln!(anstream::stderr(), "{}", page.finish().0)?;
        }
        Ok(())
    }

    /// A limiter on the namespace of the settings. In a dry run it takes nothing. No namespace is registered for it: one
    /// that is new has no limits to take from.
    pub(crate) fn limiter(&self) -> Result<Limiter> {
        Ok(self.limiter_builder()?.build())
    }

    /// The limiter in the making.
    pub(crate) fn limiter_builder(&self) -> Result<LimiterBuilder> {
        let catalog = if self.dry_run { self.rehearsed()? } else { self.catalog()? };
        // A command that fails before its work has begun has used nothing.
        Ok(Limiter::builder(catalog).store_timeout(self.settings.store_timeout.value).on_drop(OnDrop::Refund))
    }

    /// Says something on stderr that is worth knowing and no part of the answer.
    pub(crate) fn note(&self, note: impl Display) {
        if !self.quiet {
            // A write error is ignored: if stderr is closed, there is no reader to report it to.
            let _ = writeln!(anstream::stderr(), "{}", told(&note.to_string(), &self.terminal));
        }
    }

    /// Whether only errors and the answer are wanted.
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// A line on stderr that says how far something has come, where that is wanted.
    pub(crate) fn progress(&self) -> ProgressLine {
        let is_watched = self.terminal.is_watched && !self.quiet;
        ProgressLine::new(&Terminal { is_watched, ..self.terminal })
    }

    /// Says something on stderr as soon as the answer is written.
    pub(crate) fn note_afterwards(&self, note: impl Display) {
        self.afterwards.borrow_mut().push(note.to_string());
    }

    /// Says how to see the rest of a list, if there is more, as soon as the list is written.
    pub(crate) fn note_next(&self, next: &Option<String>) {
        if let Some(next) = next {
            self.note_afterwards(format_args!("there is more: --after '{next}'"));
        }
    }

    /// Says what was to be said after the answer.
    pub(crate) fn say_afterwards(&self) {
        self.afterwards.take().into_iter().for_each(|note| self.note(note));
    }

    fn rehearsal(&self) -> Result<Arc<dyn Backend>> {
        let store = self.store()?;
        Ok(Arc::clone(self.rehearsal.get_or_init(|| Arc::new(DryRunStore::on(store)))))
    }

    fn rehearsed(&self) -> Result<Catalog> {
        let registry = self.registry_on(self.rehearsal()?)?;
        Ok(registry.open_or_register(&self.settings.namespace.value).wait()?)
    }

    fn registry_on(&self, store: Arc<dyn Backend>) -> Result<Registry> {
        Ok(self.builder(store).build()?)
    }

    fn builder(&self, store: Arc<dyn Backend>) -> RegistryBuilder {
        let CliSettings { principal, audit_retention, usage_retention, cache_ttl, .. } = &self.settings;
        let builder = Registry::builder(store).principal(principal.value.clone());
        let builder = builder.audit_retention(audit_retention.value.0).cache_ttl(cache_ttl.value);
        builder.usage_retention(usage_retention.value.0)
    }
}
