//! The context of a command: settings, store, terminal.

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
use crate::output::{Answer, Format, ProgressLine, Terminal, TextPage, wrap_message};
use crate::settings::{CliSettings, Setting, SettingSource};
use crate::store::{DryRunStore, can_be_created, exists, missing_store, open_store};

/// The context of a command. The store is opened on first use.
pub(crate) struct Context {
    /// The settings.
    pub(crate) settings: CliSettings,
    /// The terminal, if the streams lead to one.
    pub(crate) terminal: Terminal,
    /// The output format.
    pub(crate) format: Format,
    /// Whether changes are made to a dry-run store only.
    pub(crate) dry_run: bool,
    /// Whether questions are answered with yes.
    pub(crate) yes: bool,
    quiet: bool,
    queued_notes: RefCell<Vec<String>>,
    store: OnceCell<Arc<dyn Backend>>,
    /// Replaces a store that does not exist.
    empty: OnceCell<Arc<dyn Backend>>,
    dry_run_store: OnceCell<Arc<dyn Backend>>,
}

impl Context {
    /// Creates the context of a command with these settings.
    pub(crate) fn new(settings: CliSettings, terminal: Terminal, flags: &GlobalArgs) -> Context {
        let format = if flags.json { Format::Json } else { Format::Text };
        Context {
            settings,
            terminal,
            format,
            dry_run: flags.dry_run,
            yes: flags.yes,
            quiet: flags.quiet,
            queued_notes: RefCell::default(),
            store: OnceCell::new(),
            empty: OnceCell::new(),
            dry_run_store: OnceCell::new(),
        }
    }

    /// Returns the store to read from, or to write leases to. Neither a command that only reads nor a dry run creates a
    /// file: a store that does not exist counts as empty.
    pub(crate) fn store(&self) -> Result<Arc<dyn Backend>> {
        if self.store.get().is_some() || exists(&self.settings)? || !can_be_created(&self.settings)? {
            return self.store_to_change();
        }
        Ok(Arc::clone(self.empty.get_or_init(|| Arc::new(Memory::default()))))
    }

    /// Returns the store to read from. Notes if a store that was named does not exist, because that may be a typo.
    pub(crate) fn store_to_read(&self) -> Result<Arc<dyn Backend>> {
        let store = self.store()?;
        let is_new = self.store.get().is_none();
        let Setting { value, source } = self.settings.store()?;
        if is_new && *source != SettingSource::Default {
            self.note(format_args!("the store {value} does not exist yet"));
        }
        Ok(store)
    }

    /// Returns the store to change. It is created if it does not exist.
    pub(crate) fn store_to_change(&self) -> Result<Arc<dyn Backend>> {
        if let Some(store) = self.store.get() {
            return Ok(Arc::clone(store));
        }
        let store = open_store(&self.settings)?;
        Ok(Arc::clone(self.store.get_or_init(|| store)))
    }

    /// Returns the store for changes outside any namespace; in a dry run, a dry-run store on top of it.
    pub(crate) fn backend_to_change(&self) -> Result<Arc<dyn Backend>> {
        if self.dry_run { self.dry_run_store() } else { self.store_to_change() }
    }

    /// Fails if the store does not exist: for commands about the store itself.
    ///
    /// # Errors
    ///
    /// [`OpenFailed`](crate::store::OpenFailed).
    pub(crate) fn require_store(&self) -> Result<()> {
        if exists(&self.settings)? { Ok(()) } else { Err(missing_store(&self.settings)?.into()) }
    }

    /// Returns the namespaces of the store, to read or change them. A store that does not exist has none, and is not created.
    pub(crate) fn existing_registry(&self) -> Result<Registry> {
        self.registry_on(if self.dry_run { self.dry_run_store()? } else { self.store_to_read()? })
    }

    /// Returns the namespaces of the store, which is created if it does not exist, unless this is a dry run.
    pub(crate) fn registry(&self) -> Result<Registry> {
        self.registry_on(if self.dry_run { self.dry_run_store()? } else { self.store_to_change()? })
    }

    /// Returns the namespace that issued a ticket, deleted or not.
    pub(crate) fn namespace_of(&self, ticket: &str) -> Result<Option<Namespace>> {
        Ok(self.registry_on(self.store()?)?.namespace_of_token(ticket.trim()).wait()?)
    }

    /// Returns the namespace of the settings to read from. The default one need not be registered: then it is empty.
    pub(crate) fn catalog(&self) -> Result<Catalog> {
        let name = &self.settings.namespace.value;
        match self.registry_on(self.store_to_read()?)?.open(name).wait() {
            Err(CatalogError::NamespaceNotFound(_)) if name == DEFAULT_NAMESPACE => self.dry_run_catalog(),
            other => Ok(other?),
        }
    }

    /// Changes the namespace of the settings, which is registered first if it is new. In a dry run, and if the namespace is
    /// new, the change is made to a dry-run store before, so that a failed change does not leave a new namespace behind.
    pub(crate) fn change<T>(&self, change: impl Fn(&Catalog) -> Result<T>) -> Result<T> {
        let registry = self.registry_on(self.store()?)?;
        let name = &self.settings.namespace.value;
        let is_new = registry.get(name).wait()?.is_none();
        let tried = (is_new || self.dry_run).then(|| change(&self.dry_run_catalog()?)).transpose()?;
        if is_new {
            self.note_registered(name);
        }
        match tried {
            Some(outcome) if self.dry_run => Ok(outcome),
            _ => change(&self.registry_on(self.store_to_change()?)?.open_or_register(name).wait()?),
        }
    }

    /// Changes the namespace of the settings, after a [dry run](Context::try_change) of the same change.
    pub(crate) fn change_after_dry_run<T>(&self, change: impl FnOnce(&Catalog) -> Result<T>) -> Result<T> {
        let registry = self.registry_on(self.store()?)?;
        let name = &self.settings.namespace.value;
        if registry.get(name).wait()?.is_none() {
            self.note_registered(name);
        }
        change(&self.registry_on(self.store_to_change()?)?.open_or_register(name).wait()?)
    }

    /// Notes that a namespace was registered, unless it is the default one: another name may be a typo.
    fn note_registered(&self, name: &str) {
        if name != DEFAULT_NAMESPACE {
            let was = if self.dry_run { "would be" } else { "was" };
            self.queue_note(format_args!("namespace {name} {was} registered for it"));
        }
    }

    /// Makes a change to a dry-run store only: for a change of several steps, a later one of which may be impossible.
    pub(crate) fn try_change<T>(&self, change: impl FnOnce(&Catalog) -> Result<T>) -> Result<T> {
        let registry = self.registry_on(Arc::new(DryRunStore::on(self.store()?)))?;
        change(&registry.open_or_register(&self.settings.namespace.value).wait()?)
    }

    /// Prints to stderr what a question is about, if one will be asked.
    pub(crate) fn show(&self, answer: &impl Answer) -> Result<()> {
        if !self.yes && self.terminal.can_ask {
            let mut page = TextPage::on(&self.terminal);
            answer.text(&mut page);
            writeln!(anstream::stderr(), "{}", page.finish().0)?;
        }
        Ok(())
    }

    /// Returns a limiter on the namespace of the settings. In a dry run it changes nothing. It registers no namespace: a new
    /// one has no limits to acquire from.
    pub(crate) fn limiter(&self) -> Result<Limiter> {
        Ok(self.limiter_builder()?.build())
    }

    /// Returns the builder of the limiter.
    pub(crate) fn limiter_builder(&self) -> Result<LimiterBuilder> {
        let catalog = if self.dry_run { self.dry_run_catalog()? } else { self.catalog()? };
        // A command that fails before its work has begun has used nothing.
        Ok(Limiter::builder(catalog).store_timeout(self.settings.store_timeout.value).on_drop(OnDrop::Refund))
    }

    /// Prints a notice to stderr, unless `--quiet` was given.
    pub(crate) fn note(&self, note: impl Display) {
        if !self.quiet {
            self.warn(note);
        }
    }

    /// Prints a warning to stderr, also if `--quiet` was given: the reason why the exit code is not 0.
    pub(crate) fn warn(&self, reason: impl Display) {
        // A write error is ignored: if stderr is closed, there is no reader to report it to.
        let _ = writeln!(anstream::stderr(), "{}", wrap_message(&reason.to_string(), &self.terminal));
    }

    /// Returns whether `--quiet` was given.
    #[cfg(feature = "batch")]
    pub(crate) fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Returns a progress line on stderr, which is disabled by `--quiet` and without a terminal.
    pub(crate) fn progress(&self) -> ProgressLine {
        let is_watched = self.terminal.is_watched && !self.quiet;
        ProgressLine::new(&Terminal { is_watched, ..self.terminal })
    }

    /// Queues a notice to be printed after the output of the command.
    pub(crate) fn queue_note(&self, note: impl Display) {
        self.queued_notes.borrow_mut().push(note.to_string());
    }

    /// Queues a notice how to list the next page, if there is one.
    pub(crate) fn note_next(&self, next: &Option<String>) {
        if let Some(next) = next {
            self.queue_note(format_args!("there is more: --after '{next}'"));
        }
    }

    /// Prints the queued notices.
    pub(crate) fn print_queued_notes(&self) {
        for note in self.queued_notes.take() {
            self.note(note);
        }
    }

    fn dry_run_store(&self) -> Result<Arc<dyn Backend>> {
        let store = self.store()?;
        Ok(Arc::clone(self.dry_run_store.get_or_init(|| Arc::new(DryRunStore::on(store)))))
    }

    fn dry_run_catalog(&self) -> Result<Catalog> {
        let registry = self.registry_on(self.dry_run_store()?)?;
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
