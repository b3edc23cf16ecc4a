use std::{
    borrow::Cow,
    fs::File,
    io::{self, Read, Seek, SeekFrom, Write},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

/// Keeps compressed bytes: in memory up to a budget, then in one unnamed temporary file.
#[derive(Debug)]
pub(crate) struct Scratch {
    dir: PathBuf,
    state: Mutex<ScratchState>,
}

#[derive(Debug)]
struct ScratchState {
    budget: usize,
    file: Option<File>,
}

/// Bytes that a [`Scratch`] keeps, in memory or in its file.
#[derive(Debug)]
pub(crate) enum ScratchBuffer {
    Memory(Vec<u8>),
    File { offset: u64, length: usize },
}

impl Scratch {
    pub(crate) fn new(budget: usize, dir: PathBuf) -> Self {
        Self {
            dir,
            state: Mutex::new(ScratchState { budget, file: None }),
        }
    }

    pub(crate) fn keep(&self, mut bytes: Vec<u8>) -> io::Result<ScratchBuffer> {
        bytes.shrink_to_fit();
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(left) = state.budget.checked_sub(bytes.len()) {
            state.budget = left;
            return Ok(ScratchBuffer::Memory(bytes));
        }
        let file = match &mut state.file {
            Some(file) => file,
            none => none.insert(tempfile::tempfile_in(&self.dir)?),
        };
        let offset = file.seek(SeekFrom::End(0))?;
        file.write_all(&bytes)?;
        Ok(ScratchBuffer::File {
            offset,
            length: bytes.len(),
        })
    }

    pub(crate) fn read<'a>(&self, buffer: &'a ScratchBuffer) -> io::Result<Cow<'a, [u8]>> {
        match buffer {
            ScratchBuffer::Memory(bytes) => Ok(Cow::Borrowed(bytes)),
            ScratchBuffer::File { offset, length } => self.read_file(*offset, *length).map(Cow::Owned),
        }
    }

    fn read_file(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let file = state.file.as_mut().ok_or(io::ErrorKind::NotFound)?;
        file.seek(SeekFrom::Start(offset))?;
        let mut bytes = vec![0; length];
        file.read_exact(&mut bytes)?;
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scratch_beyond_its_budget_uses_a_file_and_reads_back() {
        let scratch = Scratch::new(10, std::env::temp_dir());
        let kept: Vec<ScratchBuffer> = [b"0123456789".to_vec(), b"ab".to_vec(), Vec::new(), b"cde".to_vec()]
            .into_iter()
            .map(|bytes| scratch.keep(bytes).unwrap())
            .collect();
        assert!(matches!(kept[0], ScratchBuffer::Memory(_)));
        assert!(matches!(kept[1], ScratchBuffer::File { offset: 0, length: 2 }));
        assert!(matches!(kept[3], ScratchBuffer::File { offset: 2, length: 3 }));
        let read: Vec<_> = kept
            .iter()
            .map(|buffer| scratch.read(buffer).unwrap().into_owned())
            .collect();
        assert_eq!(
            read,
            [b"0123456789".to_vec(), b"ab".to_vec(), Vec::new(), b"cde".to_vec()]
        );
    }

    #[test]
    fn keep_without_its_folder_fails() {
        let scratch = Scratch::new(0, "/nonexistent".into());
        assert!(scratch.keep(b"a".to_vec()).is_err());
    }
}
