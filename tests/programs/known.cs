// Does exactly what it is told, and nothing else: the numbers in a trace of it are known. One command a line on standard input; each
// is answered with "done" and the command when it is over.
//   throw N          N exceptions thrown and caught
//   collect N G      N blocking collections of generation G
//   contend N        N waits for a lock that another thread holds
//   spend MS         at least MS milliseconds of work: 70 % of it in Seventy, 20 % in Twenty, 10 % in Ten. Before "done" it says "spent" and how many
//                    milliseconds each of the three took by the clock
//   hold N           from now on keeps N objects of type Held, each with a Grain[25]; a collection before the answer
using System;
using System.Diagnostics;
using System.Globalization;
using System.Runtime.CompilerServices;
using System.Threading;

public struct Grain { public int Weight; }
public class Held { public Grain[] Payload = new Grain[25]; }

public static class Known {
  static readonly object Gate = new object();
  static Held[] held;

  static void Throw(int count) {
    for (int i = 0; i < count; i++) {
      try { throw new InvalidOperationException("number " + i); } catch (InvalidOperationException) { }
    }
  }

  static void Collect(int count, int generation) {
    for (int i = 0; i < count; i++) GC.Collect(generation, GCCollectionMode.Forced, true);
  }

  // The lock is let go only once the other thread was seen waiting for it for a while: it has stopped spinning by then.
  static void Contend(int count) {
    for (int i = 0; i < count; i++) {
      var waiter = new Thread(() => { lock (Gate) { } });
      lock (Gate) {
        waiter.Start();
        for (int seen = 0; seen < 20; Thread.Sleep(1)) {
          if ((waiter.ThreadState & System.Threading.ThreadState.WaitSleepJoin) != 0) seen++;
        }
      }
      waiter.Join();
    }
  }

  // Work, and not time, is what is shared out: a time that is not over because the thread had no processor would be work left undone.
  static double Burn(int units) {
    double sum = 0;
    for (int i = 0; i < units * 400000; i++) sum += Math.Sqrt(i);
    return sum;
  }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Seventy() { return Burn(7) + 1; }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Twenty() { return Burn(2) + 1; }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Ten() { return Burn(1) + 1; }

  static void Spend(int milliseconds) {
    var methods = new Func<double>[] { Seventy, Twenty, Ten };
    var spent = new double[3];
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) {
      for (int i = 0; i < 3; i++) {
        double began = watch.Elapsed.TotalMilliseconds;
        methods[i]();
        spent[i] += watch.Elapsed.TotalMilliseconds - began;
      }
    }
    Console.WriteLine(string.Format(CultureInfo.InvariantCulture, "spent {0} {1} {2}", spent[0], spent[1], spent[2]));
  }

  static void Hold(int count) {
    held = new Held[count];
    for (int i = 0; i < count; i++) held[i] = new Held();
    GC.Collect();
  }

  public static void Main() {
    Console.WriteLine("ready");
    for (string line; (line = Console.ReadLine()) != null;) {
      string[] words = line.Split(' ');
      int number = int.Parse(words[1]);
      switch (words[0]) {
        case "throw": Throw(number); break;
        case "collect": Collect(number, int.Parse(words[2])); break;
        case "contend": Contend(number); break;
        case "spend": Spend(number); break;
        case "hold": Hold(number); break;
        default: throw new ArgumentException(line);
      }
      Console.WriteLine("done " + line);
    }
    GC.KeepAlive(held);
  }
}
