//! Files in folders that others have filled, such as a medium that was carried or a bundle that was
//! unpacked.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// Opens a regular file for reading.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for anything else, also behind a link: opening a FIFO or reading a
/// terminal waits for ever, and a device has no end.
pub fn open_file(path: &Path) -> io::Result<File> {
    // Not opened at all, because opening alone changes some devices.
    check(&fs::metadata(path)?)?;
    // By now it may be another one, and opening a FIFO would wait for a writer.
    let file = File::options()
        .read(true)
        .custom_flags(flags(OFlags::NONBLOCK))
        .open(path)?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Reads a regular file of at most so many bytes.
///
/// # Errors
/// As [`open_file`], and [`ErrorKind::FileTooLarge`].
pub fn read_file(path: &Path, most_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open_file(path)?;
    // A file that grows is as large as what is read of it.
    file.take(most_bytes.saturating_add(1))
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most_bytes {
        let reason = format!("it is larger than {most_bytes} bytes");
        return Err(io::Error::new(ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// Returns the files of a folder with this extension, in the order of their names.
///
/// # Errors
/// A folder that cannot be read.
pub fn files_with_extension(folder: &Path, extension: &str) -> io::Result<Vec<PathBuf>> {
    let listed: io::Result<Vec<_>> = fs::read_dir(folder)?.collect();
    let mut files: Vec<PathBuf> = listed?.into_iter().map(|entry| entry.path()).collect();
    files.retain(|file| file.extension().is_some_and(|found| found == extension));
    files.sort();
    Ok(files)
}

/// Opens a regular file for writing, or creates it. What it holds stays.
///
/// # Errors
/// [`ErrorKind::InvalidInput`] for anything else, and a link: it could lead to a file of this
/// machine.
pub fn open_or_create(path: &Path) -> io::Result<File> {
    let file = File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .custom_flags(flags(OFlags::NONBLOCK | OFlags::NOFOLLOW))
        .open(path);
    // The system says that a FIFO has no reader, or that there are too many links.
    let file = file.map_err(|error| match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => not_regular(),
        _ => error,
    })?;
    check(&file.metadata()?)?;
    Ok(file)
}

/// Returns true for a file that a shell has opened for a command, as for `<(...)`. Opening it again
/// does not wait, and what it holds comes from the user.
pub fn is_of_shell(path: &Path) -> bool {
    ["/dev/fd", "/dev/stdin", "/proc/self/fd"]
        .iter()
        .any(|folder| path.starts_with(folder))
}

fn check(found: &Metadata) -> io::Result<()> {
    if found.is_file() {
        Ok(())
    } else {
        Err(not_regular())
    }
}

fn not_regular() -> io::Error {
    io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")
}

fn flags(flags: OFlags) -> i32 {
    // All flags of Linux are far below the sign.
    flags.bits().cast_signed()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;
    use std::process::Command;

    use tempfile::TempDir;

    use super::*;

    /// Returns a folder with a file, and with everything else that a folder can hold.
    fn folder() -> TempDir {
        let folder = TempDir::new().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("file"), "12345678").unwrap();
        fs::create_dir(path("folder")).unwrap();
        let made = Command::new("mkfifo").arg(path("fifo")).status().unwrap();
        assert!(made.success());
        drop(UnixListener::bind(path("socket")).unwrap());
        for (link, to) in [
            ("to-file", "file"),
            ("to-fifo", "fifo"),
            ("to-device", "/dev/zero"),
            ("to-terminal", "/dev/tty"),
            ("to-itself", "to-itself"),
        ] {
            symlink(to, path(link)).unwrap();
        }
        folder
    }

    #[test]
    fn open_refuses_what_is_no_regular_file_and_never_waits() {
        let folder = folder();
        for name in ["file", "to-file"] {
            assert_eq!(
                read_file(&folder.path().join(name), 8).unwrap(),
                b"12345678"
            );
        }
        for name in ["folder", "fifo", "socket", "to-fifo", "to-device"] {
            let refused = open_file(&folder.path().join(name)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{name}");
        }
        for name in ["to-terminal", "to-itself", "missing"] {
            assert!(open_file(&folder.path().join(name)).is_err(), "{name}");
        }
    }

    #[test]
    fn read_takes_as_many_bytes_as_its_limit_and_not_one_more() {
        let folder = folder();
        let file = folder.path().join("file");
        assert_eq!(read_file(&file, 8).unwrap().len(), 8);
        assert_eq!(read_file(&file, u64::MAX).unwrap().len(), 8);
        let refused = read_file(&file, 7).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::FileTooLarge);
    }

    #[test]
    fn open_or_create_keeps_a_file_and_follows_no_link() {
        let folder = folder();
        let path = |name: &str| folder.path().join(name);
        assert!(open_or_create(&path("new")).is_ok());
        assert!(open_or_create(&path("file")).is_ok());
        assert_eq!(fs::read(path("file")).unwrap(), b"12345678");
        for name in [
            "folder",
            "fifo",
            "socket",
            "to-file",
            "to-fifo",
            "to-device",
        ] {
            let refused = open_or_create(&path(name)).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{name}");
        }
    }
}
