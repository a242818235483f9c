// Does exactly what it is told, and nothing else: the numbers in a trace of it are known. One command a line on standard input; each
// is answered with "done" and the command when it is over.
//   throw N          N exceptions thrown and caught
//   collect N G      N blocking collections of generation G
//   background N     N collections in the background, 50 milliseconds apart; the runtime blocks instead for the first, and where the heap is small
//   contend N        N waits for a lock that another thread holds
//   hold-lock MS     has a thread wait for a lock that another holds for MS milliseconds; does not wait for either
//   receive N        N threads wait in a socket for what never comes; does not wait for them
//   convoy N MS      N threads that want the same lock again and again for MS milliseconds; who has it sleeps
//   occupy N MS      N work items of the thread pool for each processor, which sleep for MS milliseconds
//   await N          N work items for each processor, which wait in place for asynchronous work: it takes another thread of the pool to end
//   flood N          N events of provider DnTop-Known, each with 2000 bytes, as fast as it goes
//   churn MS         large objects, each dropped at once, for MS milliseconds
//   induce N MS      N collections of all generations, MS milliseconds apart
//   compile MS       methods that are generated and called once, for MS milliseconds
//   leak N           N times: 10 MB that are held from then on, and a full collection
//   spend MS         at least MS milliseconds of work: 70 % of it in Seventy, 20 % in Twenty, 10 % in Ten. Before "done" it says "spent" and how many
//                    milliseconds each of the three took by the clock
//   deep N MS        a method that calls itself N times, and then works for MS milliseconds
//   slow N MS        for MS milliseconds, Alone; and then as long, Crowded: while N other threads work, too. Before "done" it says "spent" and how many
//                    milliseconds each of the two took by the clock
//   pause N MS       for MS milliseconds, N threads that work while this one collects
//   wait-in N        N threads for each way to wait, which wait for good; does not wait for them
//   shapes MS        for MS milliseconds, work in what compilers make methods of: a generic type, an async method, a recursion, a lambda
//   native MS        for MS milliseconds, in turn compression, full collections and generated methods: work of native libraries
//   hold N           from now on keeps N objects of type Held, each with a Grain[25]; a collection before the answer
using System;
using System.Collections.Generic;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Globalization;
using System.IO;
using System.IO.Compression;
using System.IO.Pipes;
using System.Net;
using System.Net.Sockets;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Threading;
using System.Threading.Tasks;

public struct Grain { public int Weight; }
public class Held { public Grain[] Payload = new Grain[25]; }

[EventSource(Name = "DnTop-Known")]
public class KnownEvents : EventSource {
  public static readonly KnownEvents Log = new KnownEvents();
  [Event(1, Level = EventLevel.Informational)] public void Item(string text) { WriteEvent(1, text); }
}

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

  static void Background(int count) {
    for (int i = 0; i < count; i++) {
      GC.Collect(2, GCCollectionMode.Forced, false, false);
      Thread.Sleep(50);
    }
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

  static void HoldLock(int milliseconds) {
    using (var taken = new ManualResetEventSlim()) {
      var holder = new Thread(() => { lock (Gate) { taken.Set(); Thread.Sleep(milliseconds); } });
      var waiter = new Thread(() => { lock (Gate) { } });
      holder.IsBackground = waiter.IsBackground = true;
      holder.Start();
      taken.Wait();
      waiter.Start();
    }
  }

  static void WaitIn(int count) {
    var ways = new Action[] {
      () => { var gate = new object(); lock (gate) Monitor.Wait(gate); },
      () => new SemaphoreSlim(0).Wait(),
      () => new Semaphore(0, 1).WaitOne(),
      () => new ManualResetEventSlim().Wait(),
      () => Thread.Sleep(Timeout.Infinite),
      () => new AnonymousPipeServerStream(PipeDirection.In).ReadByte(),
      ReadFile,
      WaitForLock,
      () => Task.Delay(Timeout.Infinite).Wait(),
    };
    foreach (var way in ways) {
      for (int i = 0; i < count; i++) new Thread(() => way()) { IsBackground = true }.Start();
    }
    Receive(count);
    // They spin before they wait.
    Thread.Sleep(500);
  }

  static void ReadFile() {
    var pipe = new AnonymousPipeServerStream(PipeDirection.Out);
    File.OpenRead("/proc/self/fd/" + pipe.ClientSafePipeHandle.DangerousGetHandle()).ReadByte();
    GC.KeepAlive(pipe);
  }

  static void WaitForLock() {
    var gate = new object();
    var isHeld = new ManualResetEventSlim();
    new Thread(() => { lock (gate) { isHeld.Set(); Thread.Sleep(Timeout.Infinite); } }) { IsBackground = true }.Start();
    isHeld.Wait();
    lock (gate) { }
  }

  static void Receive(int count) {
    for (int i = 0; i < count; i++) {
      var socket = new Socket(AddressFamily.InterNetwork, SocketType.Dgram, ProtocolType.Udp);
      socket.Bind(new IPEndPoint(IPAddress.Loopback, 0));
      new Thread(() => socket.Receive(new byte[1])) { IsBackground = true }.Start();
    }
  }

  static void Convoy(int count, int milliseconds) {
    var watch = Stopwatch.StartNew();
    var threads = new Thread[count];
    for (int i = 0; i < count; i++) {
      threads[i] = new Thread(() => { while (watch.ElapsedMilliseconds < milliseconds) lock (Gate) { Thread.Sleep(2); } });
      threads[i].Start();
    }
    foreach (var thread in threads) thread.Join();
  }

  static void Queue(int countForEachProcessor, Action work) {
    int count = countForEachProcessor * Environment.ProcessorCount;
    using (var left = new CountdownEvent(count)) {
      for (int i = 0; i < count; i++) ThreadPool.QueueUserWorkItem(state => { work(); left.Signal(); });
      left.Wait();
    }
  }

  static async Task<int> Later() {
    await Task.Delay(20);
    return 1;
  }

  static void Flood(int count) {
    var text = new string('x', 1000);
    for (int i = 0; i < count; i++) KnownEvents.Log.Item(text);
  }

  // Work, and not time, is what is shared out: a time that is not over because the thread had no processor would be work left undone.
  [MethodImpl(MethodImplOptions.NoInlining)] static double Burn(int units) {
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

  [MethodImpl(MethodImplOptions.NoInlining)] static double Deep(int left, int milliseconds) {
    if (left > 0) return Deep(left - 1, milliseconds) + 1;
    double sum = 0;
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) sum += Burn(1);
    return sum;
  }

  static double BurnFor(int milliseconds) {
    double sum = 0;
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) for (int i = 0; i < 20000; i++) sum += Math.Sqrt(i);
    return sum;
  }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Alone(int milliseconds) { return BurnFor(milliseconds) + 1; }
  [MethodImpl(MethodImplOptions.NoInlining)] static double Crowded(int milliseconds) { return BurnFor(milliseconds) + 1; }

  static void Slow(int count, int milliseconds) {
    double began = Stopwatch.GetTimestamp();
    Alone(milliseconds);
    double middle = Stopwatch.GetTimestamp();
    var others = new Thread[count];
    for (int i = 0; i < count; i++) {
      others[i] = new Thread(() => BurnFor(milliseconds));
      others[i].Start();
    }
    double crowded = Stopwatch.GetTimestamp();
    Crowded(milliseconds);
    double end = Stopwatch.GetTimestamp();
    foreach (var other in others) other.Join();
    double scale = 1000.0 / Stopwatch.Frequency;
    Console.WriteLine(string.Format(CultureInfo.InvariantCulture, "spent {0} {1}", (middle - began) * scale, (end - crowded) * scale));
  }

  static void Pause(int count, int milliseconds) {
    var others = new Thread[count];
    for (int i = 0; i < count; i++) {
      others[i] = new Thread(() => BurnFor(milliseconds));
      others[i].Start();
    }
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds; Thread.Sleep(2)) GC.Collect();
    foreach (var other in others) other.Join();
  }

  class Box<T> {
    [MethodImpl(MethodImplOptions.NoInlining)] public double Work(int milliseconds) { return BurnFor(milliseconds) + 1; }
  }

  static async Task<double> InnerAsync(int milliseconds) {
    await Task.Yield();
    return BurnFor(milliseconds) + 1;
  }

  [MethodImpl(MethodImplOptions.NoInlining)] static double Recursive(int left, int milliseconds) {
    return left > 0 ? Recursive(left - 1, milliseconds) + 1 : BurnFor(milliseconds) + 1;
  }

  // Methods with loops are not inlined.
  static void Shapes(int milliseconds) {
    Func<int, double> lambda = time => {
      double sum = 0;
      for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < time;) sum += BurnFor(1);
      return sum;
    };
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) {
      new Box<int>().Work(20);
      new Box<Held>().Work(20);
      InnerAsync(20).Wait();
      Recursive(5, 20);
      lambda(20);
    }
  }

  static void Native(int milliseconds) {
    var text = new byte[1000000];
    new Random(1).NextBytes(text);
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) {
      using (var compressed = new DeflateStream(Stream.Null, CompressionLevel.Optimal)) compressed.Write(text, 0, text.Length);
      for (var collecting = Stopwatch.StartNew(); collecting.ElapsedMilliseconds < 20;) GC.Collect();
      Compile(20);
    }
  }

  // Large objects that nothing holds.
  static void Churn(int milliseconds) {
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) {
      GC.KeepAlive(new byte[1000000]);
      Thread.Sleep(1);
    }
  }

  static void Induce(int count, int milliseconds) {
    for (int i = 0; i < count; i++) {
      GC.Collect();
      Thread.Sleep(milliseconds);
    }
  }

  static void Compile(int milliseconds) {
    for (var watch = Stopwatch.StartNew(); watch.ElapsedMilliseconds < milliseconds;) {
      var method = new DynamicMethod("Generated", typeof(int), new[] { typeof(int) });
      var code = method.GetILGenerator();
      for (int i = 0; i < 500; i++) {
        code.Emit(OpCodes.Ldarg_0);
        code.Emit(OpCodes.Ldc_I4, i);
        code.Emit(OpCodes.Xor);
        code.Emit(OpCodes.Starg_S, (byte)0);
      }
      code.Emit(OpCodes.Ldarg_0);
      code.Emit(OpCodes.Ret);
      ((Func<int, int>)method.CreateDelegate(typeof(Func<int, int>)))(1);
    }
  }

  static readonly List<byte[]> Leaked = new List<byte[]>();

  // Ten megabytes more are held after each full collection.
  static void Leak(int count) {
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < 10000; j++) Leaked.Add(new byte[1000]);
      GC.Collect();
      Thread.Sleep(500);
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
        case "background": Background(number); break;
        case "contend": Contend(number); break;
        case "hold-lock": HoldLock(number); break;
        case "wait-in": WaitIn(number); break;
        case "shapes": Shapes(number); break;
        case "native": Native(number); break;
        case "receive": Receive(number); break;
        case "convoy": Convoy(number, int.Parse(words[2])); break;
        case "occupy": Queue(number, () => Thread.Sleep(int.Parse(words[2]))); break;
        case "await": Queue(number, () => Later().Result.ToString()); break;
        case "flood": Flood(number); break;
        case "spend": Spend(number); break;
        case "churn": Churn(number); break;
        case "induce": Induce(number, int.Parse(words[2])); break;
        case "compile": Compile(number); break;
        case "leak": Leak(number); break;
        case "hold": Hold(number); break;
        case "deep": Deep(number, int.Parse(words[2])); break;
        case "pause": Pause(number, int.Parse(words[2])); break;
        case "slow": Slow(number, int.Parse(words[2])); break;
        default: throw new ArgumentException(line);
      }
      Console.WriteLine("done " + line);
    }
    GC.KeepAlive(held);
  }
}
