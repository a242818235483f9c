// Part of every program here.
using System;
using System.Threading;

/// Exits when standard input is closed, so that a killed test leaves no program running.
public static class Lifeline {
  public static void Hold() {
    var thread = new Thread(() => { while (Console.In.ReadLine() != null) { } Environment.Exit(0); });
    thread.IsBackground = true;
    thread.Name = "lifeline";
    thread.Start();
  }
}
