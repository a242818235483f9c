//! The `dn-top` program: arguments in, exit code out.

use std::process::ExitCode;

fn main() -> ExitCode {
    dn_top::cli::main()
}
