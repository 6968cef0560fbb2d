// SPDX-License-Identifier: Apache-2.0
//! The ESP suites (catalogue/suites.yaml): the lengths of their fields, and the ciphers that seal and open a packet.
//!
//! ```text
//!  0     4        8        8 + iv                          end − icv     end
//!  | SPI | number | IV     | payload, padding, trailer     | ICV         |
//! ```
//! AEADs are RFC 4106 and RFC 7634; the others encrypt by CBC (RFC 2451, RFC 3602) or not at all (RFC 2410), then
//! authenticate by HMAC (RFC 2404, RFC 4868).

use aes::{Aes128, Aes256};
use cbc::cipher::{
    Array, Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit,
    KeyInit,
};
use des::TdesEde3;
use hmac::{Hmac, Mac};
use ring::aead::{AES_128_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use sha1::Sha1;
use sha2::Sha256;

use crate::failure::{Failure, Outcome};
use crate::protocol::Suite;

/// Bytes of SPI and sequence number.
pub const HEADER: usize = 8;
const SALT: usize = 4;

impl Suite {
    pub fn iv_bytes(self) -> usize {
        match self {
            Suite::NullNull | Suite::NullSha1 => 0,
            Suite::Aes128Sha1 | Suite::Aes256Sha256 => 16,
            _ => 8,
        }
    }

    /// Returns the alignment of payload, padding and trailer: their length is a multiple of it, bytes.
    pub fn align(self) -> usize {
        match self {
            Suite::TripleDesSha1 => 8,
            Suite::Aes128Sha1 | Suite::Aes256Sha256 => 16,
            _ => 4,
        }
    }

    pub fn icv_bytes(self) -> usize {
        match self {
            Suite::NullNull => 0,
            Suite::NullSha1 | Suite::TripleDesSha1 | Suite::Aes128Sha1 => 12,
            _ => 16,
        }
    }

    pub fn is_aead(self) -> bool {
        matches!(
            self,
            Suite::Aes128Gcm16 | Suite::Aes256Gcm16 | Suite::ChaCha20Poly1305
        )
    }

    /// Returns the lengths of the cipher's key (for an AEAD, with its salt) and of the HMAC's key, bytes.
    fn key_bytes(self) -> (usize, usize) {
        match self {
            Suite::NullNull => (0, 0),
            Suite::NullSha1 => (0, 20),
            Suite::TripleDesSha1 => (24, 20),
            Suite::Aes128Sha1 => (16, 20),
            Suite::Aes256Sha256 => (32, 32),
            Suite::Aes128Gcm16 => (16 + SALT, 0),
            Suite::Aes256Gcm16 | Suite::ChaCha20Poly1305 => (32 + SALT, 0),
        }
    }
}

enum Cipher {
    Null,
    TripleDes(Box<TdesEde3>),
    Aes128(Box<Aes128>),
    Aes256(Box<Aes256>),
}

enum Integrity {
    None,
    Sha1(Hmac<Sha1>),
    Sha256(Hmac<Sha256>),
}

enum Method {
    Aead(Box<LessSafeKey>, [u8; SALT]),
    Apart(Cipher, Integrity),
}

/// A suite with its keys: seals and opens packets in place.
pub struct Keyed {
    pub suite: Suite,
    /// 64-bit sequence numbers, whose high half is authenticated but not sent (RFC 4303 2.2.1).
    pub esn: bool,
    method: Method,
}

impl Keyed {
    /// Sets up a suite with its keys. Fails if a key has the wrong length; the message contains no key.
    pub fn new(suite: Suite, esn: bool, encryption: &[u8], integrity: &[u8]) -> Outcome<Self> {
        let (cipher_bytes, hmac_bytes) = suite.key_bytes();
        let refused = || {
            Failure::new(
                format!(
                    "{suite:?}: keys of {} and {} bytes, expected {cipher_bytes} and {hmac_bytes}",
                    encryption.len(),
                    integrity.len()
                ),
                "an AEAD's key ends with its salt of 4 bytes; the second key is the HMAC's",
            )
        };
        if (encryption.len(), integrity.len()) != (cipher_bytes, hmac_bytes) {
            return Err(refused());
        }
        let aead = |algorithm| -> Outcome<Method> {
            let (key, salt) = encryption.split_at(cipher_bytes - SALT);
            let key = UnboundKey::new(algorithm, key).map_err(|_| refused())?;
            let salt = salt.try_into().map_err(|_| refused())?;
            Ok(Method::Aead(Box::new(LessSafeKey::new(key)), salt))
        };
        let sha1 = || Hmac::new_from_slice(integrity).map(Integrity::Sha1);
        let apart = |cipher, integrity| Method::Apart(cipher, integrity);
        let method = match suite {
            Suite::Aes128Gcm16 => aead(&AES_128_GCM)?,
            Suite::Aes256Gcm16 => aead(&AES_256_GCM)?,
            Suite::ChaCha20Poly1305 => aead(&CHACHA20_POLY1305)?,
            Suite::NullNull => apart(Cipher::Null, Integrity::None),
            Suite::NullSha1 => apart(Cipher::Null, sha1().map_err(|_| refused())?),
            Suite::TripleDesSha1 => {
                let cipher = TdesEde3::new_from_slice(encryption).map_err(|_| refused())?;
                apart(
                    Cipher::TripleDes(Box::new(cipher)),
                    sha1().map_err(|_| refused())?,
                )
            }
            Suite::Aes128Sha1 => {
                let cipher = Aes128::new_from_slice(encryption).map_err(|_| refused())?;
                apart(Cipher::Aes128(Box::new(cipher)), sha1().map_err(|_| refused())?)
            }
            Suite::Aes256Sha256 => {
                let cipher = Aes256::new_from_slice(encryption).map_err(|_| refused())?;
                let hmac = Hmac::new_from_slice(integrity).map_err(|_| refused())?;
                apart(Cipher::Aes256(Box::new(cipher)), Integrity::Sha256(hmac))
            }
        };
        Ok(Keyed { suite, esn, method })
    }

    /// Encrypts a packet in place and writes its ICV. SPI, sequence number, IV, payload, padding and trailer must be
    /// there. `high` is the upper half of the sequence number.
    pub fn seal(&self, packet: &mut [u8], high: u32) {
        let (iv, icv) = (self.suite.iv_bytes(), self.suite.icv_bytes());
        let end = packet.len() - icv;
        match &self.method {
            Method::Aead(key, salt) => {
                let (nonce, aad) = self.aead_inputs(packet, salt, high);
                let payload = &mut packet[HEADER + iv..end];
                // This does not fail: the payload is far shorter than the limit of an AEAD.
                if let Ok(tag) = key.seal_in_place_separate_tag(nonce, Aad::from(aad.bytes()), payload) {
                    packet[end..].copy_from_slice(tag.as_ref());
                }
            }
            Method::Apart(cipher, integrity) => {
                let (head, payload) = packet[..end].split_at_mut(HEADER + iv);
                let iv = &head[HEADER..];
                match cipher {
                    Cipher::Null => {}
                    Cipher::TripleDes(cipher) => encrypt(&**cipher, iv, payload),
                    Cipher::Aes128(cipher) => encrypt(&**cipher, iv, payload),
                    Cipher::Aes256(cipher) => encrypt(&**cipher, iv, payload),
                }
                let mut full = [0; 32];
                let check = self.check(integrity, &packet[..end], high, &mut full);
                packet[end..].copy_from_slice(&check[..icv]);
            }
        }
    }

    /// Checks the ICV of a packet and decrypts the packet in place. If the ICV is wrong, returns false, and the payload
    /// may hold anything.
    pub fn open(&self, packet: &mut [u8], high: u32) -> bool {
        let (iv, icv) = (self.suite.iv_bytes(), self.suite.icv_bytes());
        let end = packet.len() - icv;
        match &self.method {
            Method::Aead(key, salt) => {
                let (nonce, aad) = self.aead_inputs(packet, salt, high);
                key.open_in_place(nonce, Aad::from(aad.bytes()), &mut packet[HEADER + iv..])
                    .is_ok()
            }
            Method::Apart(cipher, integrity) => {
                let mut full = [0; 32];
                let check = self.check(integrity, &packet[..end], high, &mut full);
                if check[..icv] != packet[end..] {
                    return false;
                }
                let (head, payload) = packet[..end].split_at_mut(HEADER + iv);
                let iv = &head[HEADER..];
                match cipher {
                    Cipher::Null => {}
                    Cipher::TripleDes(cipher) => decrypt(&**cipher, iv, payload),
                    Cipher::Aes128(cipher) => decrypt(&**cipher, iv, payload),
                    Cipher::Aes256(cipher) => decrypt(&**cipher, iv, payload),
                }
                true
            }
        }
    }

    fn aead_inputs(&self, packet: &[u8], salt: &[u8; SALT], high: u32) -> (Nonce, AssociatedData) {
        let mut nonce = [0; 12];
        nonce[..SALT].copy_from_slice(salt);
        nonce[SALT..].copy_from_slice(&packet[HEADER..HEADER + 8]);
        let mut data = AssociatedData {
            bytes: [0; 12],
            length: HEADER,
        };
        data.bytes[..HEADER].copy_from_slice(&packet[..HEADER]);
        if self.esn {
            data.bytes[4..8].copy_from_slice(&high.to_be_bytes());
            data.bytes[8..].copy_from_slice(&packet[4..8]);
            data.length = 12;
        }
        (Nonce::assume_unique_for_key(nonce), data)
    }

    fn check<'a>(&self, integrity: &Integrity, bytes: &[u8], high: u32, full: &'a mut [u8; 32]) -> &'a [u8] {
        let high = high.to_be_bytes();
        let more: &[u8] = if self.esn { &high } else { &[] };
        match integrity {
            Integrity::None => {}
            Integrity::Sha1(hmac) => {
                let tag = hmac.clone().chain_update(bytes).chain_update(more).finalize();
                full[..20].copy_from_slice(&tag.into_bytes());
            }
            Integrity::Sha256(hmac) => {
                let tag = hmac.clone().chain_update(bytes).chain_update(more).finalize();
                full.copy_from_slice(&tag.into_bytes());
            }
        }
        full
    }
}

/// The data that an AEAD authenticates in addition to the payload (RFC 4106 5): the SPI and the sequence number, which
/// with ESN has its full 64 bits.
struct AssociatedData {
    bytes: [u8; 12],
    length: usize,
}

impl AssociatedData {
    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

fn encrypt<C: BlockCipherEncrypt>(cipher: &C, iv: &[u8], payload: &mut [u8]) {
    let iv = Block::<C>::from_fn(|place| iv[place]);
    let (blocks, _) = Array::slice_as_chunks_mut(payload);
    cbc::Encryptor::inner_iv_init(cipher, &iv).encrypt_blocks(blocks);
}

fn decrypt<C: BlockCipherDecrypt>(cipher: &C, iv: &[u8], payload: &mut [u8]) {
    let iv = Block::<C>::from_fn(|place| iv[place]);
    let (blocks, _) = Array::slice_as_chunks_mut(payload);
    cbc::Decryptor::inner_iv_init(cipher, &iv).decrypt_blocks(blocks);
}
