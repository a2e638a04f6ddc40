//! The bytes of an entry: a mark, the lengths of key and payload, both, and the SHA-256 of all that.

use sha2::{Digest, Sha256};

/// What an entry begins with; another format has another mark.
const MARK: &[u8; 8] = b"EXTILE1\n";

/// How the names of entries end.
pub(crate) const ENDING: &str = ".entry";

const LENGTH: usize = size_of::<u64>();
/// Bytes of a SHA-256.
pub(crate) const SUM: usize = 32;

/// The SHA-256 of a text, in hexadecimal digits.
pub fn sum(text: &str) -> String {
    let sum = Sha256::digest(text.as_bytes());
    let digits: Vec<String> = sum.iter().map(|byte| format!("{byte:02x}")).collect();
    digits.concat()
}

/// The name of the file with this key.
pub(crate) fn file_name(key: &str) -> String {
    sum(key) + ENDING
}

pub(crate) fn encode(key: &str, payload: &[u8]) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    for part in [key.as_bytes(), payload] {
        bytes.extend((part.len() as u64).to_le_bytes());
    }
    bytes.extend(key.as_bytes());
    bytes.extend(payload);
    let sum = Sha256::digest(&bytes);
    bytes.extend(sum);
    bytes
}

/// The key and the payload, or what is wrong.
pub(crate) fn decode(bytes: &[u8]) -> Result<(&str, &[u8]), String> {
    let read = || {
        let rest = bytes.strip_prefix(MARK)?;
        let (lengths, rest) = rest.split_at_checked(2 * LENGTH)?;
        let (key, payload) = lengths.split_at(LENGTH);
        let length =
            |bytes: &[u8]| usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok();
        let (key, rest) = rest.split_at_checked(length(key)?)?;
        let (payload, sum) = rest.split_at_checked(length(payload)?)?;
        (sum.len() == SUM).then_some((key, payload, sum))
    };
    let (key, payload, sum) = read().ok_or("it is no whole entry")?;
    if Sha256::digest(&bytes[..bytes.len() - SUM])[..] != *sum {
        return Err("its checksum is wrong".to_string());
    }
    let key = std::str::from_utf8(key).map_err(|error| error.to_string())?;
    Ok((key, payload))
}
