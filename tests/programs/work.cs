// A busy program: allocates, collects, throws, contends for a lock and writes events of its own, forever.
//   work.dll [MILLISECONDS-BETWEEN-ROUNDS [EVENTS-PER-ROUND]]      by default 1 and 1; 0 milliseconds is as fast as possible
using System;
using System.Collections.Generic;
using System.Diagnostics.Tracing;
using System.Threading;

[EventSource(Name = "DnTop-Work")]
public class WorkEvents : EventSource {
  public static readonly WorkEvents Log = new WorkEvents();
  [Event(1, Level = EventLevel.Informational)] public void Item(int id, string name, double value) { WriteEvent(1, id, name, value); }
}

public static class Work {
  static readonly object Gate = new object();

  static double Spin(int rounds) {
    double sum = 0;
    for (int i = 0; i < rounds; i++) sum += Math.Sqrt(i);
    return sum;
  }

  public static void Main(string[] args) {
    int pause = args.Length > 0 ? int.Parse(args[0]) : 1;
    int burst = args.Length > 1 ? int.Parse(args[1]) : 1;
    Lifeline.Hold();
    for (int i = 0; i < 2; i++) {
      var thread = new Thread(() => { while (true) { lock (Gate) Spin(2000); Thread.Sleep(1); } });
      thread.IsBackground = true;
      thread.Name = "contender " + i;
      thread.Start();
    }
    var kept = new List<byte[]>();
    for (int round = 0; ; round++) {
      kept.Add(new byte[10000]);
      if (kept.Count == 1000) kept.Clear();
      if (round % 10 == 0) {
        try { throw new InvalidOperationException("round " + round); } catch (InvalidOperationException) { }
      }
      for (int i = 0; i < burst; i++) WorkEvents.Log.Item(round, "item", round * 0.5);
      Spin(20000);
      if (pause > 0) Thread.Sleep(pause);
    }
  }
}
