//! A variable of a process's environment.

/// One variable. Its text may be anything: it comes from the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// Name, up to the first `=`.
    pub name: String,
    /// Value, all behind that.
    pub value: String,
}

/// Names that hold one of these are taken for secrets. The list is that of the official tools' users, with our addition at the end.
const SECRET: [&str; 12] = [
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PWD",
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "CREDENTIAL",
    "SESSION",
    "CONNECTIONSTRING",
];

impl Variable {
    /// Whether the name is that of a secret: its value is masked until someone asks for it.
    ///
    /// `PWD` and `OLDPWD` are the shell's directories, not passwords.
    pub fn is_secret(&self) -> bool {
        let name = self.name.to_uppercase();
        !matches!(name.as_str(), "PWD" | "OLDPWD") && SECRET.iter().any(|word| name.contains(word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_known_by_name() {
        let secret = |name: &str| Variable { name: name.to_owned(), value: String::new() }.is_secret();
        for name in ["GITHUB_TOKEN", "db_password", "ConnectionStrings__Main_ConnectionString", "AWS_ACCESS_KEY_ID", "MYSQL_PWD", "ApiKey"]
        {
            assert!(secret(name), "{name}");
        }
        for name in ["PATH", "PWD", "OLDPWD", "HOME", "DOTNET_gcServer", "KEYBOARD"] {
            assert!(!secret(name), "{name}");
        }
    }
}
