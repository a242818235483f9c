//! Program name and runtime version, for runtimes that do not report them.

use std::env::consts::EXE_SUFFIX;
use std::path::{Path, is_separator};

use crate::ipc::RuntimeVersion;
use crate::model::SafeText;

/// Returns the name of the entry assembly by the command line: `dotnet [options] /srv/app.dll args` is `app`, `/srv/Shop args` is `Shop`.
pub(crate) fn entry_name(arguments: &[Vec<u8>]) -> Option<&[u8]> {
    let (program, rest) = arguments.split_first()?;
    let program = file_name(program);
    // A command line may omit the suffix.
    if program.strip_suffix(EXE_SUFFIX.as_bytes()).unwrap_or(program) != b"dotnet" {
        return Some(without_extension(program)).filter(|name| !name.is_empty());
    }
    // The assembly follows the host's own options and `exec`; an SDK command (`dotnet build`) has none and is named after the host.
    let assembly = rest.iter().map(|argument| file_name(argument)).find(|name| without_extension(name) != *name);
    Some(assembly.map_or(program, without_extension))
}

/// Returns the version in the path of a shared runtime's library: `.../Microsoft.NETCore.App/3.1.23/libcoreclr.so`. A self-contained application
/// has the runtime next to it, in a path without a version. The owner of the process chooses the path.
pub(crate) fn version_of(library: &Path) -> Option<RuntimeVersion> {
    let version = library.parent()?;
    let text = || Some(RuntimeVersion::new(&SafeText::new(version.file_name()?.to_str()?)));
    (version.parent()?.file_name()? == "Microsoft.NETCore.App").then(text)?
}

fn file_name(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| is_separator(char::from(*byte))).next().unwrap_or(path)
}

fn without_extension(name: &[u8]) -> &[u8] {
    name.strip_suffix(b".dll").or_else(|| name.strip_suffix(b".exe")).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_is_named_after_its_assembly() {
        for (line, name) in [
            ("/usr/share/dotnet/dotnet /srv/shop/Shop.Api.dll --urls http://*:80", "Shop.Api"),
            ("dotnet exec --runtimeconfig a.json --depsfile b.json app.dll x.dll", "app"),
            ("dotnet build", "dotnet"),
            ("dotnet", "dotnet"),
            ("/srv/shop/Shop.Api arg.dll", "Shop.Api"),
            ("./pwsh -NoLogo", "pwsh"),
            ("app.exe", "app"),
        ] {
            let arguments: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            assert_eq!(entry_name(&arguments), Some(name.as_bytes()), "{line}");
        }
        assert_eq!(entry_name(&[]), None);
        assert_eq!(entry_name(&[b"/".to_vec()]), None);
    }

    #[test]
    fn runtime_version_is_read_from_the_library_path() {
        let version = |path: &str| version_of(Path::new(path)).map(|version| version.to_string());
        assert_eq!(version("/usr/share/dotnet/shared/Microsoft.NETCore.App/3.1.23/libcoreclr.so").as_deref(), Some("3.1.23"));
        assert_eq!(version("/x/Microsoft.NETCore.App/10.0.0-rc.1/libcoreclr.so").as_deref(), Some("10.0.0-rc.1"));
        let hostile = version("/x/Microsoft.NETCore.App/3.1\x1b[2J\u{202e}/libcoreclr.so");
        assert_eq!(hostile.as_deref(), Some("3.1\u{fffd}[2J\u{fffd}"));
        assert_eq!(version("/srv/shop/libcoreclr.so"), None);
        assert_eq!(version("libcoreclr.so"), None);
    }
}
