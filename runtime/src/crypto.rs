//! The one crypto provider of the process.

/// Why the provider could not be installed.
#[derive(Debug, thiserror::Error)]
pub enum CryptoError {
    /// Somebody was first: TLS would then depend on the order of start-up.
    #[error("another crypto provider is installed in this process already")]
    AlreadyInstalled,
}

/// Makes ring the provider of every TLS connection of this process. The first thing that `main` does: a client
/// that is made earlier would panic.
pub fn install() -> Result<(), CryptoError> {
    rustls::crypto::ring::default_provider().install_default().map_err(|_| CryptoError::AlreadyInstalled)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_second_provider_is_an_error() {
        assert!(super::install().is_ok());
        assert!(super::install().is_err());
    }
}
