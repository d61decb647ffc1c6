//! Changes that are made together.

/// One change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'b> {
    /// The key gets the value.
    Put(&'b [u8], &'b [u8]),
    /// The key goes, if it is there.
    Delete(&'b [u8]),
}

impl<'b> Change<'b> {
    /// The key that is changed.
    pub(crate) fn key(&self) -> &'b [u8] {
        match self {
            Change::Put(key, _) | Change::Delete(key) => key,
        }
    }

    /// The bytes of key and value.
    pub(crate) fn size(&self) -> usize {
        match self {
            Change::Put(key, value) => key.len() + value.len(),
            Change::Delete(key) => key.len(),
        }
    }

    pub(crate) fn is_delete(&self) -> bool {
        matches!(self, Change::Delete(_))
    }
}

/// What of [`WriteBatch::bytes`] belongs to a change.
#[derive(Clone, Debug)]
struct Step {
    key_len: usize,
    /// `None`: the key is deleted.
    value_len: Option<usize>,
}

/// Changes that a database makes together: all of them are there, or none, whatever happens. Of several that concern
/// one key the last one counts.
///
/// ```
/// let mut batch = durum_kv::WriteBatch::new();
/// batch.put(b"to", b"70");
/// batch.delete(b"from");
/// assert_eq!(batch.len(), 2);
/// ```
#[derive(Clone, Debug, Default)]
pub struct WriteBatch {
    bytes: Vec<u8>,
    steps: Vec<Step>,
}

impl WriteBatch {
    /// No changes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives a key a value.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.bytes.extend_from_slice(value);
        self.steps.push(Step {
            key_len: key.len(),
            value_len: Some(value.len()),
        });
    }

    /// Deletes a key.
    pub fn delete(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.steps.push(Step {
            key_len: key.len(),
            value_len: None,
        });
    }

    pub(crate) fn push(&mut self, change: Change<'_>) {
        match change {
            Change::Put(key, value) => self.put(key, value),
            Change::Delete(key) => self.delete(key),
        }
    }

    /// Adds the changes of another batch behind these.
    pub fn append(&mut self, other: &WriteBatch) {
        self.bytes.extend_from_slice(&other.bytes);
        self.steps.extend_from_slice(&other.steps);
    }

    /// Takes all changes out.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.steps.clear();
    }

    /// The number of changes.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether there are no changes.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Whether any of them deletes.
    pub(crate) fn has_deletes(&self) -> bool {
        self.steps.iter().any(|step| step.value_len.is_none())
    }

    /// The bytes of its keys and values.
    pub fn size(&self) -> usize {
        self.bytes.len()
    }

    /// The changes in their order.
    pub fn iter(&self) -> impl Iterator<Item = Change<'_>> {
        let mut rest = &self.bytes[..];
        self.steps.iter().map(move |step| {
            let (key, more) = rest.split_at(step.key_len);
            let Some(len) = step.value_len else {
                rest = more;
                return Change::Delete(key);
            };
            let (value, more) = more.split_at(len);
            rest = more;
            Change::Put(key, value)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_back_in_their_order() {
        let mut batch = WriteBatch::new();
        batch.put(b"", b"value");
        batch.delete(b"gone");
        let mut more = WriteBatch::new();
        more.put(b"key", b"");
        batch.append(&more);
        let changes: Vec<_> = batch.iter().collect();
        let expected = [
            Change::Put(b"", b"value"),
            Change::Delete(b"gone"),
            Change::Put(b"key", b""),
        ];
        assert_eq!((changes, batch.size()), (expected.to_vec(), 12));
        batch.clear();
        assert!(batch.is_empty() && batch.iter().next().is_none());
    }
}
