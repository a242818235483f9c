// Starts another .NET program with the same runtime, prints its PID on standard output, and waits for it.
//   parent.dll PROGRAM.dll [ARGUMENT]..
using System;
using System.Diagnostics;

public static class Parent {
  public static int Main(string[] args) {
    var start = new ProcessStartInfo(Process.GetCurrentProcess().MainModule.FileName);
    foreach (string arg in args) start.ArgumentList.Add(arg);
    using (var child = Process.Start(start)) {
      Console.WriteLine("child " + child.Id);
      child.WaitForExit();
      return child.ExitCode;
    }
  }
}
