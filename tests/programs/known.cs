// Does exactly what it is told, and nothing else: the numbers in a trace of it are known. One command a line on standard input; each
// is answered with "done" and the command when it is over.
//   throw N          N exceptions thrown and caught
//   collect N G      N blocking collections of generation G
//   contend N        N waits for a lock that another thread holds
//   spend MS         MS milliseconds of running time: 70 % in Seventy, 20 % in Twenty, 10 % in Ten
//   hold N           from now on keeps N objects of type Held, each with a byte[100]; a collection before the answer
using System;
using System.Diagnostics;
using System.Runtime.CompilerServices;
using System.Threading;

public class Held { public byte[] Payload = new byte[100]; }

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

  static double Burn(int milliseconds) {
    double sum = 0;
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) {
      for (int i = 0; i < 10000; i++) sum += Math.Sqrt(i);
    }
    return sum;
  }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Seventy(int milliseconds) { return Burn(milliseconds) + 1; }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Twenty(int milliseconds) { return Burn(milliseconds) + 1; }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Ten(int milliseconds) { return Burn(milliseconds) + 1; }

  static void Spend(int milliseconds) {
    for (int spent = 0; spent < milliseconds; spent += 100) {
      Seventy(70);
      Twenty(20);
      Ten(10);
    }
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
