// Two meters with known values.
//
// DnTop.Meter runs by itself. Every 5 ms, `hits` counts one (routes /a and /b in turn) and `lat` records 0 to 99 ms in turn. `g` is always 42.
//
// DnTop.Told is controlled by one command per line on standard input; prints "done" and the command when it is complete:
//   count N        `sold` counts N of fruit apple and 2 N of fruit pear
//   change N       `stock` increases by N, or decreases if N is negative
//   record N V     `size` records V, N times
//   gauge V        `level` is V from now on
using System;
using System.Collections.Generic;
using System.Diagnostics.Metrics;
using System.Threading;

public static class Meters {
  static void Go() {
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

  public static void Main() {
    var going = new Thread(Go);
    going.IsBackground = true;
    going.Start();
    double height = 0;
    var meter = new Meter("DnTop.Told", "1.2");
    var sold = meter.CreateCounter<long>("sold", "{piece}", "pieces of fruit");
    var stock = meter.CreateUpDownCounter<int>("stock");
    var size = meter.CreateHistogram<double>("size", "By");
    meter.CreateObservableGauge<double>("level", () => height);
    for (string line; (line = Console.ReadLine()) != null;) {
      string[] words = line.Split(' ');
      int number = int.Parse(words[1]);
      switch (words[0]) {
        case "count":
          sold.Add(number, new KeyValuePair<string, object>("fruit", "apple"));
          sold.Add(2 * number, new KeyValuePair<string, object>("fruit", "pear"));
          break;
        case "change": stock.Add(number); break;
        case "record": for (int i = 0; i < number; i++) size.Record(int.Parse(words[2])); break;
        case "gauge": height = number; break;
        default: throw new ArgumentException(line);
      }
      Console.WriteLine("done " + line);
    }
  }
}
