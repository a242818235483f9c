// A start-up hook, no program: writes what it sees of the variable DN_TOP_SET into the file that DN_TOP_HOOK names.
using System;
using System.IO;

internal class StartupHook {
  public static void Initialize() {
    string file = Environment.GetEnvironmentVariable("DN_TOP_HOOK");
    if (file != null) File.WriteAllText(file, "DN_TOP_SET=" + Environment.GetEnvironmentVariable("DN_TOP_SET"));
  }
}
