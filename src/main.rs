//! The `dn-top` program; returns the exit code of the command line.

use std::process::ExitCode;

fn main() -> ExitCode {
    dn_top::cli::main()
}
