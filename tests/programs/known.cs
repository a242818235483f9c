// Performs exactly the commands it is given, so that the numbers in a trace of it are known. Reads one command per line from standard
// input; prints "done" and the command when it is complete.
//   throw N          N exceptions thrown and caught
//   collect N G      N blocking collections of generation G
//   background N     N background collections, 50 milliseconds apart; the runtime does a blocking one instead for the first, and if the heap is small
//   contend N        N waits for a lock held by another thread
//   hold-lock MS     a thread waits for a lock held by another for MS milliseconds; does not wait for either
//   receive N        N threads wait on a socket for data that is never sent; does not wait for them
//   convoy N MS      N threads that contend for the same lock for MS milliseconds; the holder sleeps
//   occupy N MS      N thread pool work items per processor, each of which sleeps for MS milliseconds
//   await N          N work items per processor that block on asynchronous work, which needs another pool thread to complete
//   block N          N thread pool work items that sleep forever, each on a thread that is created at once; does not wait for them
//   flood N          N events of provider DnTop-Known, of 2000 bytes each, as fast as possible
//   churn MS         large objects, each dropped at once, for MS milliseconds
//   induce N MS      N collections of all generations, MS milliseconds apart
//   compile MS       methods that are generated and called once, for MS milliseconds
//   emit N MS        N assemblies that are generated and never unloaded, MS milliseconds apart
//   leak N           N times: allocates 10 MB that stay referenced, and does a full collection
//   threads N MS     starts N threads that wait forever, MS milliseconds apart
//   timers N MS      starts N timers that are not due for an hour, MS milliseconds apart
//   open N MS        opens a file N times, MS milliseconds apart
//   allocate N MS    allocates 10 MB of native memory N times, MS milliseconds apart
//   finalize N       N times: drops an object whose finalizer waits forever, and does a full collection
//   suspend N        N calls of an async method that wait for a SemaphoreSlim forever; does not wait for them
//   fragment N       keeps every 20th of N objects of 100 kB, and does a full collection
//   spend MS         at least MS milliseconds of work: 70 % of it in Seventy, 20 % in Twenty, 10 % in Ten. Before "done", prints "spent" and the
//                    wall time of each of the three in milliseconds
//   deep N MS        a method that recurses N times, and then works for MS milliseconds
//   slow N MS        Alone for MS milliseconds; then Crowded as long, while N other threads work, too. Before "done", prints "spent" and the
//                    wall time of each of the two in milliseconds
//   work N MS        N threads that work for MS milliseconds. Before "done", prints "worked" and how often they have called Ten
//   pause N MS       N threads that work while this one collects, for MS milliseconds
//   wait-in N        N threads for each way of waiting, which wait forever; does not wait for them
//   shapes MS        work in a generic type, an async method, a recursive method and a lambda, for MS milliseconds
//   native MS        work in native libraries (compression, full collections and generated methods, in turn), for MS milliseconds
//   hold N           keeps N objects of type Held from now on, each with a Grain[25]; collects before "done"
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
using System.Reflection;
using System.Reflection.Emit;
using System.Runtime.CompilerServices;
using System.Runtime.InteropServices;
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

  // The lock is released only after the other thread has been waiting for a while: by then it has stopped spinning.
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

  static void Block(int count) {
    ThreadPool.SetMinThreads(count, count);
    for (int i = 0; i < count; i++) ThreadPool.QueueUserWorkItem(state => Thread.Sleep(Timeout.Infinite));
  }

  static async Task<int> Later() {
    await Task.Delay(20);
    return 1;
  }

  static void Flood(int count) {
    var text = new string('x', 1000);
    for (int i = 0; i < count; i++) KnownEvents.Log.Item(text);
  }

  // Shares are of work, not of time: a time slice during which the thread is descheduled would be work not done.
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

  static void Work(int count, int milliseconds) {
    long done = 0;
    var threads = new Thread[count];
    var watch = Stopwatch.StartNew();
    for (int i = 0; i < count; i++) {
      threads[i] = new Thread(() => { while (watch.ElapsedMilliseconds < milliseconds) { Ten(); Interlocked.Increment(ref done); } });
      threads[i].Start();
    }
    foreach (var thread in threads) thread.Join();
    Console.WriteLine("worked " + done);
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

  // Unreferenced large objects.
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

  static void Emit() {
    AssemblyBuilder.DefineDynamicAssembly(new AssemblyName("Generated"), AssemblyBuilderAccess.Run).DefineDynamicModule("Generated");
  }

  static readonly List<byte[]> Leaked = new List<byte[]>();

  // Ten more megabytes stay referenced after each full collection.
  static void Leak(int count) {
    for (int i = 0; i < count; i++) {
      for (int j = 0; j < 10000; j++) Leaked.Add(new byte[1000]);
      GC.Collect();
      Thread.Sleep(500);
    }
  }

  static void Repeat(int count, int milliseconds, Action action) {
    for (int i = 0; i < count; i++) {
      action();
      Thread.Sleep(milliseconds);
    }
  }

  static void StartWaiting() {
    var thread = new Thread(() => new ManualResetEvent(false).WaitOne());
    thread.IsBackground = true;
    thread.Start();
  }

  static readonly List<object> Kept = new List<object>();

  static void AllocateNative() {
    const int Size = 10000000;
    IntPtr memory = Marshal.AllocHGlobal(Size);
    // Untouched memory is not resident.
    for (int i = 0; i < Size; i += 4096) Marshal.WriteByte(memory, i, 1);
  }

  class Blocked {
    ~Blocked() { Thread.Sleep(Timeout.Infinite); }
  }

  [MethodImpl(MethodImplOptions.NoInlining)] static void Drop() { new Blocked(); }

  static readonly SemaphoreSlim Never = new SemaphoreSlim(0);

  static async Task Suspend() { await Never.WaitAsync(); }

  [MethodImpl(MethodImplOptions.NoInlining)] static void KeepSome(int count) {
    var all = new byte[count][];
    for (int i = 0; i < count; i++) {
      all[i] = new byte[100000];
      // Untouched memory is not resident.
      new Random(i).NextBytes(all[i]);
      if (i % 20 == 0) Kept.Add(all[i]);
    }
  }

  static void Fragment(int count) {
    KeepSome(count);
    GC.Collect();
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
        case "block": Block(number); break;
        case "flood": Flood(number); break;
        case "spend": Spend(number); break;
        case "churn": Churn(number); break;
        case "induce": Induce(number, int.Parse(words[2])); break;
        case "compile": Compile(number); break;
        case "emit": Repeat(number, int.Parse(words[2]), Emit); break;
        case "leak": Leak(number); break;
        case "threads": Repeat(number, int.Parse(words[2]), StartWaiting); break;
        case "timers": Repeat(number, int.Parse(words[2]), () => Kept.Add(new Timer(state => { }, null, 3600000, 3600000))); break;
        case "open": Repeat(number, int.Parse(words[2]), () => Kept.Add(File.OpenRead(typeof(Known).Assembly.Location))); break;
        case "allocate": Repeat(number, int.Parse(words[2]), AllocateNative); break;
        case "finalize": Repeat(number, 200, () => { Drop(); GC.Collect(); }); break;
        case "suspend": for (int i = 0; i < number; i++) Kept.Add(Suspend()); break;
        case "fragment": Fragment(number); break;
        case "hold": Hold(number); break;
        case "deep": Deep(number, int.Parse(words[2])); break;
        case "work": Work(number, int.Parse(words[2])); break;
        case "pause": Pause(number, int.Parse(words[2])); break;
        case "slow": Slow(number, int.Parse(words[2])); break;
        default: throw new ArgumentException(line);
      }
      Console.WriteLine("done " + line);
    }
    GC.KeepAlive(held);
  }
}
