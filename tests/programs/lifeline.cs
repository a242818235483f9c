// Part of every program here.
using System;
using System.Threading;

/// Ends the process when its standard input does, so that a test that is killed leaves no program running.
public static class Lifeline {
  public static void Hold() {
    var thread = new Thread(() => { while (Console.In.ReadLine() != null) { } Environment.Exit(0); });
    thread.IsBackground = true;
    thread.Name = "lifeline";
    thread.Start();
  }
}
