/// User in whose place a token is sent, as docker does it.
pub(super) const TOKEN_USER: &str = "<token>";

/// Credentials for one repository and their origin.
// Without `Debug`, so that nothing prints them.
#[derive(Clone)]
pub struct Login {
    /// Name of the user, for basic authentication.
    pub user: String,
    /// Password of the user, or a token that stands for a login.
    pub password: String,
    /// Origin for error messages: a file, or a helper named in it.
    pub origin: String,
}

impl Login {
    /// Returns the token that stands for a login, if there is one in place of a password.
    pub fn identity_token(&self) -> Option<&str> {
        if self.user != TOKEN_USER {
            return None;
        }
        Some(&self.password)
    }
}
