// SPDX-License-Identifier: Apache-2.0
//! The output of a guest's console, line by line.

/// The text that a guest has printed and that has not been read yet.
#[derive(Debug, Default, Clone)]
pub struct Console {
    unread: Vec<u8>,
}

impl Console {
    /// Adds printed bytes.
    pub fn take(&mut self, bytes: &[u8]) {
        self.unread.extend(bytes);
    }

    /// Takes the next complete line, without white space at its end; returns None if there is none.
    pub fn line(&mut self) -> Option<String> {
        let end = self.unread.iter().position(|&byte| byte == b'\n')?;
        let line: Vec<u8> = self.unread.drain(..=end).collect();
        Some(String::from_utf8_lossy(&line).trim_end().to_owned())
    }

    /// Returns the unread text, which may end within a line.
    pub fn rest(&self) -> String {
        String::from_utf8_lossy(&self.unread).into_owned()
    }
}
