// A startup hook that runs another program instead of its host, so that a published single-file application can run any assembly.
//   DOTNET_STARTUP_HOOKS=host.dll APPLICATION PROGRAM.dll [ARGUMENT]..
using System;
using System.Reflection;

internal class StartupHook {
  public static void Initialize() {
    string[] words = Environment.GetCommandLineArgs();
    if (words.Length < 2 || !words[1].EndsWith(".dll")) return;
    var arguments = new string[words.Length - 2];
    Array.Copy(words, 2, arguments, 0, arguments.Length);
    MethodInfo main = Assembly.LoadFrom(words[1]).EntryPoint;
    object result = main.Invoke(null, main.GetParameters().Length == 0 ? null : new object[] { arguments });
    Environment.Exit(result is int ? (int)result : 0);
  }
}
