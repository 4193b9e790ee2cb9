//! A device under SQLite's own files whose syncs can be made to fail.
#![expect(unsafe_code, reason = "SQLite asks for its files through tables of C functions")]

use std::collections::BTreeMap;
use std::ffi::{CStr, OsStr, c_char, c_int};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, Once, OnceLock, PoisonError};

use rusqlite::ffi::{
    SQLITE_IOERR_FSYNC, SQLITE_OK, sqlite3_file, sqlite3_io_methods, sqlite3_vfs, sqlite3_vfs_find,
    sqlite3_vfs_register,
};

type Sync = unsafe extern "C" fn(*mut sqlite3_file, c_int) -> c_int;
type OpenFile = unsafe extern "C" fn(
    *mut sqlite3_vfs,
    *const c_char,
    *mut sqlite3_file,
    c_int,
    *mut c_int,
) -> c_int;

static OPEN: OnceLock<OpenFile> = OnceLock::new();
static SYNC: OnceLock<Sync> = OnceLock::new();
static FILES: Mutex<Files> = Mutex::new(Files { open: BTreeMap::new(), failing: Vec::new() });

struct Files {
    /// By address.
    open: BTreeMap<usize, PathBuf>,
    /// Folders in which no sync goes well.
    failing: Vec<PathBuf>,
}

fn files() -> MutexGuard<'static, Files> {
    FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A folder in which no sync of SQLite's goes well, until this is dropped.
pub(super) struct Failing(PathBuf);

impl Failing {
    /// Of files that are opened from the first call of [`install`] on.
    pub(super) fn below(folder: &Path) -> Self {
        files().failing.push(folder.to_path_buf());
        Self(folder.to_path_buf())
    }
}

impl Drop for Failing {
    fn drop(&mut self) {
        files().failing.retain(|folder| *folder != self.0);
    }
}

/// Puts the device under all files that SQLite opens in this process from now on. It does what the
/// system does, but where it is told otherwise.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the table that SQLite uses itself is there as long as the process, and so is the
        // copy of it that is registered here.
        unsafe {
            let system = sqlite3_vfs_find(std::ptr::null());
            let mut ours = Box::new(*system);
            OPEN.set(ours.xOpen.expect("files can be opened")).expect("set once");
            ours.zName = c"failing".as_ptr();
            ours.pNext = std::ptr::null_mut();
            ours.xOpen = Some(open);
            assert_eq!(sqlite3_vfs_register(Box::leak(ours), 1), SQLITE_OK);
        }
    });
}

unsafe extern "C" fn open(
    vfs: *mut sqlite3_vfs,
    name: *const c_char,
    file: *mut sqlite3_file,
    flags: c_int,
    found: *mut c_int,
) -> c_int {
    let system = OPEN.get().expect("set before this was registered");
    // SAFETY: the arguments are those that SQLite gave, and a file that was opened has its methods.
    unsafe {
        let opened = system(vfs, name, file, flags, found);
        if opened == SQLITE_OK && !name.is_null() && !(*file).pMethods.is_null() {
            let mut methods: Box<sqlite3_io_methods> = Box::new(*(*file).pMethods);
            // The same for all files of the system.
            SYNC.get_or_init(|| methods.xSync.expect("files can be synced"));
            methods.xSync = Some(sync);
            (*file).pMethods = Box::leak(methods);
            let path = PathBuf::from(OsStr::from_bytes(CStr::from_ptr(name).to_bytes()));
            files().open.insert(file.addr(), path);
        }
        opened
    }
}

unsafe extern "C" fn sync(file: *mut sqlite3_file, flags: c_int) -> c_int {
    let fails = {
        let files = files();
        let path = files.open.get(&file.addr());
        path.is_some_and(|path| files.failing.iter().any(|folder| path.starts_with(folder)))
    };
    if fails {
        return SQLITE_IOERR_FSYNC;
    }
    let system = SYNC.get().expect("set when the file was opened");
    // SAFETY: the arguments are those that SQLite gave.
    unsafe { system(file, flags) }
}
