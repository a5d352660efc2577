//! What every command has at hand: the settings, the store and the people at the terminal.

use std::cell::OnceCell;
use std::fmt::Display;
use std::io::{self, BufRead, Write};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use tollgate::catalog::{CatalogError, RegistryBuilder};
use tollgate::limiter::DEFAULT_NAMESPACE;
use tollgate::store::Backend;
use tollgate::{Catalog, Limiter, Memory, Registry};

use crate::args::GlobalArgs;
use crate::exit::Usage;
use crate::output::style::{self, paint};
use crate::output::{Answer, Format, Page, Terminal};
use crate::settings::Settings;
use crate::store::{Rehearsal, is_there, open_store};

/// What every command has at hand. The store is opened when it is first asked for.
pub(crate) struct Context {
    /// The settings.
    pub(crate) settings: Settings,
    /// What is at the other end of the streams.
    pub(crate) terminal: Terminal,
    /// Who reads the answer.
    pub(crate) format: Format,
    /// Whether changes are only rehearsed.
    pub(crate) dry_run: bool,
    yes: bool,
    quiet: bool,
    store: OnceCell<Arc<dyn Backend>>,
    rehearsal: OnceCell<Arc<dyn Backend>>,
}

impl Context {
    /// One with these settings.
    pub(crate) fn new(settings: Settings, terminal: Terminal, flags: &GlobalArgs) -> Context {
        let format = if flags.json { Format::Json } else { Format::Text };
        Context {
            settings,
            terminal,
            format,
            dry_run: flags.dry_run,
            yes: flags.yes,
            quiet: flags.quiet,
            store: OnceCell::new(),
            rehearsal: OnceCell::new(),
        }
    }

    /// The store, to read from it, or to write to it what is no change: a lease, say.
    pub(crate) fn store(&self) -> Result<Arc<dyn Backend>> {
        if let Some(store) = self.store.get() {
            return Ok(Arc::clone(store));
        }
        // A dry run makes no file, and a store that is not there is as an empty one.
        let store = match self.dry_run && !is_there(&self.settings) {
            true => Arc::new(Memory::default()),
            false => open_store(&self.settings)?,
        };
        Ok(Arc::clone(self.store.get_or_init(|| store)))
    }

    /// The namespaces of the store, to read them, or to change them unless this is a dry run.
    pub(crate) fn registry(&self) -> Result<Registry> {
        let store = if self.dry_run { self.rehearsal()? } else { self.store()? };
        self.registry_on(store)
    }

    /// The namespace of the settings, to read from it. The default one need not be registered: then it is empty.
    pub(crate) fn catalog(&self) -> Result<Catalog> {
        let name = &self.settings.namespace.value;
        match self.registry_on(self.store()?)?.open(name).wait() {
            Err(CatalogError::NamespaceNotFound(_)) if name == DEFAULT_NAMESPACE => self.rehearsed(),
            other => Ok(other?),
        }
    }

    /// Makes a change to the namespace of the settings, which is registered first if need be. In a dry run, and if the
    /// namespace is new, the change is rehearsed before: so one that fails leaves not even the namespace behind.
    pub(crate) fn change<T>(&self, change: impl Fn(&Catalog) -> Result<T>) -> Result<T> {
        if self.dry_run {
            return change(&self.rehearsed()?);
        }
        let registry = self.registry_on(self.store()?)?;
        let name = &self.settings.namespace.value;
        let catalog = match registry.get(name).wait()? {
            Some(_) => registry.open(name).wait()?,
            None => {
                change(&self.rehearsed()?)?;
                registry.open_or_register(name).wait()?
            }
        };
        change(&catalog)
    }

    /// Rehearses a change and makes none: for a change of several steps, a later one of which may turn out to be
    /// impossible.
    pub(crate) fn rehearse<T>(&self, change: impl FnOnce(&Catalog) -> Result<T>) -> Result<T> {
        let registry = self.registry_on(Arc::new(Rehearsal::on(self.store()?)))?;
        change(&registry.open_or_register(&self.settings.namespace.value).wait()?)
    }

    /// Shows people on stderr what they are about to be asked about.
    pub(crate) fn show(&self, answer: &impl Answer) -> Result<()> {
        if !self.yes && self.terminal.can_ask {
            let mut page = Page::new(self.terminal.width);
            answer.text(&mut page);
            writeln!(anstream::stderr(), "{}", page.finish().0)?;
        }
        Ok(())
    }

    /// A limiter on the namespace of the settings, which is registered if need be. In a dry run it takes nothing.
    #[allow(dead_code, reason = "for the commands that take from buckets")]
    pub(crate) fn limiter(&self) -> Result<Limiter> {
        let catalog = match self.dry_run {
            true => self.rehearsed()?,
            false => {
                self.registry_on(self.store()?)?.open_or_register(&self.settings.namespace.value).wait()?
            }
        };
        Ok(Limiter::builder(catalog).timeout(self.settings.store_timeout.value).build())
    }

    /// Says something on stderr that is worth knowing and no part of the answer.
    pub(crate) fn note(&self, note: impl Display) {
        if !self.quiet {
            // If nobody listens there is nobody to tell.
            let _ = writeln!(anstream::stderr(), "{}", paint(style::FAINT, note));
        }
    }

    /// Says how to see the rest of a list, if there is more.
    pub(crate) fn note_next(&self, next: &Option<String>) {
        if let Some(next) = next {
            self.note(format_args!("there is more: --after '{next}'"));
        }
    }

    /// Asks before something that cannot be undone, such as to `remove everything of it, for good`.
    ///
    /// # Errors
    ///
    /// [`Usage`] if the answer is no, or if nobody can be asked and `--yes` was not given.
    pub(crate) fn confirm(&self, to_do: impl Display) -> Result<()> {
        if self.yes || self.dry_run {
            return Ok(());
        }
        if !self.terminal.can_ask {
            return Err(Usage(format!("to {to_do}, say --yes: nobody can be asked here")).into());
        }
        write!(anstream::stderr(), "{to_do}? [y/N] ")?;
        let mut answer = String::new();
        io::stdin().lock().read_line(&mut answer).context("the answer cannot be read")?;
        match answer.trim() {
            "y" | "Y" | "yes" => Ok(()),
            _ => Err(Usage("nothing was done".into()).into()),
        }
    }

    fn rehearsal(&self) -> Result<Arc<dyn Backend>> {
        let store = self.store()?;
        Ok(Arc::clone(self.rehearsal.get_or_init(|| Arc::new(Rehearsal::on(store)))))
    }

    fn rehearsed(&self) -> Result<Catalog> {
        let registry = self.registry_on(self.rehearsal()?)?;
        Ok(registry.open_or_register(&self.settings.namespace.value).wait()?)
    }

    fn registry_on(&self, store: Arc<dyn Backend>) -> Result<Registry> {
        Ok(self.builder(store).build()?)
    }

    fn builder(&self, store: Arc<dyn Backend>) -> RegistryBuilder {
        Registry::builder(store).principal(self.settings.principal.value.clone())
    }
}
