//! The run directory: found, created, opened, listed (CONTRACT.md §1). All access is relative to one
//! descriptor, so that a directory that is moved or replaced is not mixed up with another.

use super::name::{LogName, Stem};
use crate::term::{Failure, Result};
use rustix::fs::{self, AtFlags, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where jobs live when nobody says otherwise.
const DEFAULT: &str = ".gate-logs";

/// How a file of the contract is opened, whatever for: no link is followed, and a FIFO or a terminal in its place neither
/// blocks nor becomes ours.
pub(super) const OPEN: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An open run directory.
#[derive(Debug)]
pub struct RunDir {
    /// Shared with the logs that were closed: each is found again in the same directory.
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

/// A file of the contract in a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DirEntry {
    /// `.test-<STEM>.pid`
    Pid(Stem),
    /// `test-<STEM>-<STAMP>.log`
    Log(LogName),
    /// `.new-<job>.log` or `.new-<job>.pid`
    New(String),
    /// `.cursor-<job>-<id>`
    Cursor(String),
}

impl RunDir {
    /// The run directory that the flag, `TB_LOG_DIR`, `GLUDD_TEST_LOG_DIR` or the default names.
    pub fn resolve(flag: Option<&Path>) -> PathBuf {
        if let Some(path) = flag {
            return path.to_owned();
        }
        for variable in ["TB_LOG_DIR", "GLUDD_TEST_LOG_DIR"] {
            if let Some(value) = std::env::var_os(variable).filter(|v| !v.is_empty()) {
                return value.into();
            }
        }
        DEFAULT.into()
    }

    /// Opens the directory; `None` where there is none: it holds no jobs, and readers create nothing.
    ///
    /// # Errors
    /// When it exists and cannot be opened.
    pub fn open(path: &Path) -> Result<Option<RunDir>> {
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        match fs::open(path, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(RunDir { fd: Arc::new(fd), path: path.to_owned() })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(Failure::cannot(format!("open the run directory {}", path.display()), io(e))),
        }
    }

    /// Opens the directory, creating it (0700, with a `.gitignore`) where there is none.
    ///
    /// # Errors
    /// When it can be neither opened nor created.
    pub fn create(path: &Path) -> Result<RunDir> {
        if let Some(dir) = RunDir::open(path)? {
            return Ok(dir);
        }
        let failure = |e: std::io::Error| {
            Failure::cannot(format!("create the run directory {}", path.display()), e)
                .hint("choose another with --log-dir DIR or TB_LOG_DIR")
        };
        if let Some(parent) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
            std::fs::create_dir_all(parent).map_err(failure)?;
        }
        let made = match fs::mkdir(path, Mode::RWXU) {
            Ok(()) => true,
            Err(Errno::EXIST) => false,
            Err(e) => return Err(failure(io(e))),
        };
        let dir = RunDir::open(path)?.ok_or_else(|| failure(io(Errno::NOENT)))?;
        if made {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
            let file = fs::openat(&*dir.fd, ".gitignore", flags, Mode::RUSR | Mode::WUSR);
            let written = file.map_err(io).and_then(|fd| File::from(fd).write_all(b"*\n"));
            written.map_err(|e| {
                // Whoever has put something in meanwhile keeps the directory: it is not empty then.
                let _ = dir.remove(".gitignore");
                let _ = fs::rmdir(path);
                failure(e)
            })?;
        }
        Ok(dir)
    }

    /// The same directory through a descriptor of its own.
    ///
    /// # Errors
    /// As dup(2).
    pub fn duplicate(&self) -> std::io::Result<RunDir> {
        Ok(RunDir { fd: Arc::new(self.fd.try_clone()?), path: self.path.clone() })
    }

    /// The same directory through the same descriptor.
    pub(super) fn shared(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.fd)
    }

    /// The descriptor.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// The path as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory's own path, absolute and without links, as the kernel has it.
    pub fn absolute(&self) -> PathBuf {
        use std::os::fd::AsRawFd;
        std::fs::read_link(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
            .or_else(|_| std::path::absolute(&self.path))
            .unwrap_or_else(|_| self.path.clone())
    }

    /// A file's path, for messages.
    pub fn path_of(&self, file: &str) -> PathBuf {
        self.path.join(file)
    }

    /// Opens a file of the contract and checks that it is a plain one: never a link, a FIFO (which would
    /// block), a terminal or a directory. `None` where there is none.
    ///
    /// # Errors
    /// When it cannot be opened or is no plain file; it is named.
    pub fn open_file(&self, file: &str, flags: OFlags) -> Result<Option<(File, Stat)>> {
        let flags = flags | OPEN;
        let doing = || format!("open {}", self.path_of(file).display());
        let fd = match fs::openat(&*self.fd, file, flags, Mode::RUSR | Mode::WUSR) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => {
                return Err(Failure::cannot(doing(), "it is a symbolic link, not a file of ours").hint(LEAVE));
            }
            Err(Errno::NXIO) => {
                return Err(
                    Failure::cannot(doing(), "it is a FIFO or a socket, not a file of ours").hint(LEAVE)
                );
            }
            Err(e) => return Err(Failure::cannot(doing(), io(e))),
        };
        let stat = fs::fstat(&fd).map_err(|e| Failure::cannot(doing(), io(e)))?;
        let kind = FileType::from_raw_mode(stat.st_mode);
        if kind != FileType::RegularFile {
            let what = match kind {
                FileType::Directory => "a directory",
                FileType::Fifo => "a FIFO",
                FileType::CharacterDevice | FileType::BlockDevice => "a device",
                FileType::Socket => "a socket",
                _ => "no plain file",
            };
            return Err(Failure::cannot(doing(), format!("it is {what}, not a file of ours")).hint(LEAVE));
        }
        Ok(Some((File::from(fd), stat)))
    }

    /// Creates a new file (0600, or by the umask where the directory is shared).
    ///
    /// # Errors
    /// As openat(2) with O_CREAT and O_EXCL.
    pub fn create_file(&self, file: &str, flags: OFlags, shared: bool) -> std::io::Result<File> {
        let flags =
            flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NOCTTY;
        let mode = if shared { Mode::from_raw_mode(0o666) } else { Mode::RUSR | Mode::WUSR };
        Ok(File::from(fs::openat(&*self.fd, file, flags, mode)?))
    }

    /// What the path names now: device and inode, `None` where there is nothing.
    pub fn stat(&self, file: &str) -> Option<Stat> {
        fs::statat(&*self.fd, file, AtFlags::SYMLINK_NOFOLLOW).ok()
    }

    /// Removes a file; one that is not there is no error.
    ///
    /// # Errors
    /// As unlinkat(2).
    pub fn remove(&self, file: &str) -> std::io::Result<()> {
        match fs::unlinkat(&*self.fd, file, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(e) => Err(e.into()),
        }
    }

    /// Renames a file; with `replace`, over what is there.
    ///
    /// # Errors
    /// As renameat2(2).
    pub fn rename(&self, from: &str, to: &str, replace: bool) -> std::io::Result<()> {
        let flags = if replace { RenameFlags::empty() } else { RenameFlags::NOREPLACE };
        match fs::renameat_with(&*self.fd, from, &*self.fd, to, flags) {
            // A file system without RENAME_NOREPLACE (NFS): a hard link never replaces either.
            Err(Errno::INVAL | Errno::NOSYS) if !replace => {
                fs::linkat(&*self.fd, from, &*self.fd, to, AtFlags::empty())?;
                Ok(fs::unlinkat(&*self.fd, from, AtFlags::empty())?)
            }
            other => Ok(other?),
        }
    }

    /// The contract's files in the directory, in no order.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn entries(&self) -> Result<Vec<DirEntry>> {
        let doing = || format!("read the run directory {}", self.path.display());
        let mut entries = Vec::new();
        let listing = fs::Dir::read_from(&*self.fd).map_err(|e| Failure::cannot(doing(), io(e)))?;
        for entry in listing {
            let entry = entry.map_err(|e| Failure::cannot(doing(), io(e)))?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            let entry = if name.starts_with("test-") {
                LogName::parse(name).map(DirEntry::Log)
            } else if name.starts_with(".test-") {
                Stem::of_pid_file(name).map(DirEntry::Pid)
            } else if name.starts_with(".new-") {
                Some(DirEntry::New(name.to_owned()))
            } else if name.starts_with(".cursor-") {
                Some(DirEntry::Cursor(name.to_owned()))
            } else {
                None
            };
            entries.extend(entry);
        }
        Ok(entries)
    }
}

const LEAVE: &str = "the tools leave it alone: remove it yourself, or use another --log-dir";

/// The kernel's error as the standard library words it.
pub(crate) fn io(e: Errno) -> std::io::Error {
    e.into()
}
