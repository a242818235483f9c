// A startup hook, not a program: writes the value of the variable DN_TOP_SET to the file named by DN_TOP_HOOK.
using System;
using System.IO;

internal class StartupHook {
  public static void Initialize() {
    string file = Environment.GetEnvironmentVariable("DN_TOP_HOOK");
    if (file != null) File.WriteAllText(file, "DN_TOP_SET=" + Environment.GetEnvironmentVariable("DN_TOP_SET"));
  }
}
