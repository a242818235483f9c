// One meter whose values are known. Every 5 ms: `hits` counts one (route /a and /b in turn) and `lat` records 0 to 99 ms in turn. `g` is always 42.
using System.Collections.Generic;
using System.Diagnostics.Metrics;
using System.Threading;

public static class Meters {
  public static void Main() {
    Lifeline.Hold();
    var meter = new Meter("DnTop.Meter");
    var hits = meter.CreateCounter<long>("hits");
    var latency = meter.CreateHistogram<double>("lat", "ms", "made-up latency");
    meter.CreateObservableGauge<int>("g", () => 42);
    for (int i = 0; ; i++) {
      hits.Add(1, new KeyValuePair<string, object>("route", i % 2 == 0 ? "/a" : "/b"));
      latency.Record(i % 100);
      Thread.Sleep(5);
    }
  }
}
