//! Stores of this host, opened by their URLs.

use std::path::{Path, PathBuf};

use tollgate_file::FileOpenError;
use tollgate_open::{OpenError, OpenOptions, StoreUrl};
use tollgate_store::Backend;
use tollgate_store::records::{Item, ItemKey, Write};

/// A folder that is deleted on drop.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("tollgate-open-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("the folder can be made");
        Folder(path)
    }

    fn url(&self, name: &str) -> StoreUrl {
        format!("file:{}", self.0.join(name).display()).parse().expect("it is a URL")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn key() -> ItemKey {
    ItemKey::new("app/NOTES", "first")
}

fn write(store: &dyn Backend) {
    let written = store.write(&[Write::Put(Item::new(key()), Vec::new())]).wait();
    written.expect("the store is there");
}

fn has_it(store: &dyn Backend) -> bool {
    store.get_many(&[key()]).wait().expect("the store is there")[0].is_some()
}

/// Opens the URL twice: what is written through one handle is read through the other.
fn is_one_store(url: &StoreUrl) -> bool {
    let open = || url.open(&OpenOptions::default()).wait().expect("it can be opened");
    let (one, other) = (open(), open());
    write(&*one);
    has_it(&*other)
}

#[test]
fn a_file_is_one_store_and_memory_is_a_store_for_each_opening() {
    let folder = Folder::new("shared");
    assert!(is_one_store(&folder.url("limits.db")));
    assert!(!is_one_store(&StoreUrl::Memory));
}

#[test]
fn neither_exists_nor_damages_creates_a_file() {
    let folder = Folder::new("exists");
    let (url, options) = (folder.url("limits.db"), OpenOptions::default());
    assert!(!url.exists(&options).wait());
    assert_eq!(url.damages(&options).wait().expect("it need not be there"), []);
    assert!(!url.exists(&options).wait());
    drop(url.open(&options).wait().expect("it can be created"));
    assert!(url.exists(&options).wait());
    assert_eq!(url.damages(&options).wait().expect("it can be read"), []);
}

#[test]
fn the_directory_of_a_file_is_not_created() {
    let folder = Folder::new("missing");
    let error = folder.url("typo/limits.db").open(&OpenOptions::default()).wait().err();
    assert!(matches!(error, Some(OpenError::File(FileOpenError::NoFolder(_)))), "{error:?}");
    assert!(!Path::new(&folder.0).join("typo").exists());
}

#[cfg(all(feature = "shm", target_os = "linux"))]
#[test]
fn shared_memory_is_one_store() {
    let name = format!("open-test-{}", std::process::id());
    let (url, options) = (StoreUrl::Shm(name.clone()), OpenOptions::default());
    assert!(!url.exists(&options).wait());
    assert_eq!(url.damages(&options).wait().expect("it need not be there"), []);
    let is_one = is_one_store(&url);
    let damages = url.damages(&options).wait();
    let path = tollgate_shm::ShmStore::builder(&name).path().expect("the name is valid");
    std::fs::remove_file(path).expect("it was created");
    assert!(is_one);
    assert_eq!(damages.expect("it can be read"), []);
}

#[cfg(all(feature = "shm", target_os = "linux"))]
#[test]
fn an_invalid_name_is_an_error_of_opening() {
    let (url, options) = (StoreUrl::Shm("a/b".into()), OpenOptions::default());
    assert!(url.exists(&options).wait(), "so that opening it reports why");
    assert!(matches!(url.open(&options).wait(), Err(OpenError::Shm(_))));
}
