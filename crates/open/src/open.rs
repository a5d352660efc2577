use std::sync::Arc;

use tollgate_file::FileStore;
use tollgate_store::{Backend, Memory, Reply};

#[cfg(feature = "redis")]
use crate::redis;
#[cfg(all(feature = "shm", target_os = "linux"))]
use crate::shm;
use crate::{DamagesError, OpenError, OpenOptions, StoreUrl, file};

/// A damaged or missing part of a store.
///
/// # Examples
///
/// ```
/// use tollgate_open::{OpenOptions, StoreDamage, StoreUrl};
///
/// let damages: Vec<StoreDamage> = StoreUrl::Memory.damages(&OpenOptions::default()).wait()?;
/// assert_eq!(damages, []);
/// # Ok::<(), tollgate_open::DamagesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreDamage {
    /// The part of the store: `the file`, `the memory`, `the table` or `the server`.
    pub part: &'static str,
    /// What is wrong with it.
    pub problem: String,
}

impl StoreUrl {
    /// Opens the store. Opening is begun at once.
    ///
    /// A file and shared memory are created if they do not exist; the directory of a file is not, so that a typo leaves no
    /// directories behind. A table costs money, and is created only if the URL says so. They are opened before this returns,
    /// which may take as long as the timeout of a call if other processes have the file locked.
    ///
    /// # Cancel safety
    ///
    /// Nothing is left behind, but a table that is being created may be created.
    ///
    /// # Errors
    ///
    /// [`OpenError`] with what is wrong and what to do.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_open::{OpenOptions, StoreUrl};
    ///
    /// let url: StoreUrl = "memory".parse()?;
    /// let store = url.open(&OpenOptions::default()).wait()?;
    /// assert!(store.clock().now().as_micros() > 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(&self, options: &OpenOptions) -> Reply<'static, Result<Arc<dyn Backend>, OpenError>> {
        match self {
            StoreUrl::Memory => {
                let store = Memory::builder().usage_retention(options.usage_retention).build();
                Reply::ready(Ok(shared(store)))
            }
            StoreUrl::File(path) => Reply::ready(file::open(path, options).map(shared).map_err(Into::into)),
            #[cfg(all(feature = "shm", target_os = "linux"))]
            StoreUrl::Shm(name) => Reply::ready(shm::open(name, options).map(shared).map_err(Into::into)),
            #[cfg(feature = "dynamodb")]
            StoreUrl::Dynamodb(url) => {
                let opening = url.open_table(options);
                Reply::later(async { opening.await.map(shared) })
            }
            #[cfg(feature = "redis")]
            StoreUrl::Redis(address) => {
                let opening = redis::open(address, options);
                Reply::later(async { opening.await.map(shared).map_err(Into::into) })
            }
        }
    }

    /// Returns false if opening the store would create it. If that cannot be known it returns true, and opening the store
    /// reports why. Only a table whose URL has `create=true` is asked for across a network.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_open::{OpenOptions, StoreUrl};
    ///
    /// let options = OpenOptions::default();
    /// assert!(StoreUrl::Memory.exists(&options).wait());
    /// assert!(!StoreUrl::File("no/such/limits.db".into()).exists(&options).wait());
    /// ```
    #[cfg_attr(not(feature = "dynamodb"), expect(unused_variables, reason = "only a table is asked for"))]
    pub fn exists(&self, options: &OpenOptions) -> Reply<'static, bool> {
        match self {
            StoreUrl::Memory => Reply::ready(true),
            StoreUrl::File(path) => Reply::ready(path.exists()),
            #[cfg(all(feature = "shm", target_os = "linux"))]
            StoreUrl::Shm(name) => Reply::ready(shm::exists(name)),
            #[cfg(feature = "dynamodb")]
            StoreUrl::Dynamodb(url) => url.exists(options),
            // A server is never created.
            #[cfg(feature = "redis")]
            StoreUrl::Redis(_) => Reply::ready(true),
        }
    }

    /// Returns what is damaged or missing in the store itself; nothing for a store in memory, or for one that opening would
    /// create. A file and shared memory are read before this returns, which takes a while if they are large.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`DamagesError`] if the store cannot be opened, or did not answer.
    ///
    /// # Examples
    ///
    /// ```
    /// use tollgate_open::{OpenOptions, StoreUrl};
    ///
    /// let url = StoreUrl::File("no/such/limits.db".into());
    /// assert_eq!(url.damages(&OpenOptions::default()).wait()?, []);
    /// # Ok::<(), tollgate_open::DamagesError>(())
    /// ```
    pub fn damages(&self, options: &OpenOptions) -> Reply<'static, Result<Vec<StoreDamage>, DamagesError>> {
        match self {
            StoreUrl::File(path) if path.exists() => {
                let damages = file::open(path, options).map(|store| FileStore::damages(&store));
                Reply::ready(found("the file", damages.map_err(OpenError::from)))
            }
            #[cfg(all(feature = "shm", target_os = "linux"))]
            StoreUrl::Shm(name) if shm::exists(name) => {
                let damages = shm::open(name, options).map(|store| shm::damages(&store));
                Reply::ready(found("the memory", damages.map_err(OpenError::from)))
            }
            #[cfg(feature = "dynamodb")]
            StoreUrl::Dynamodb(url) => {
                let (url, options) = (url.clone(), *options);
                Reply::later(async move {
                    // Opening would create a table that does not exist.
                    if !url.exists(&options).await {
                        return Ok(Vec::new());
                    }
                    let table = url.open_table(&options).await?;
                    found("the table", Ok(table.shortcomings().await?))
                })
            }
            #[cfg(feature = "redis")]
            StoreUrl::Redis(address) => {
                let opening = redis::open(address, options);
                Reply::later(async {
                    let store = opening.await.map_err(OpenError::from)?;
                    found("the server", Ok(store.damages().await?))
                })
            }
            _ => Reply::ready(Ok(Vec::new())),
        }
    }
}

fn shared(store: impl Backend + 'static) -> Arc<dyn Backend> {
    Arc::new(store)
}

/// Returns the problems of one part of a store.
fn found(
    part: &'static str,
    problems: Result<Vec<String>, OpenError>,
) -> Result<Vec<StoreDamage>, DamagesError> {
    Ok(problems?.into_iter().map(|problem| StoreDamage { part, problem }).collect())
}
