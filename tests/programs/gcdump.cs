// Reads a heap file with the code of dotnet-gcdump, and prints the size of its objects, and number and size of those of each type, as JSON.
//   gcdump.dll FOLDER FILE      FOLDER has dotnet-trace, whose Microsoft.Diagnostics.Monitoring.EventPipe.dll contains that code
using System;
using System.Collections;
using System.Collections.Generic;
using System.IO;
using System.Linq;
using System.Reflection;

public static class ReadHeapFile {
  const BindingFlags Any = BindingFlags.Public | BindingFlags.NonPublic | BindingFlags.Instance;

  // The types are internal.
  static object Get(object of, string name) {
    var field = of.GetType().GetField(name, Any);
    return field != null ? field.GetValue(of) : of.GetType().GetProperty(name, Any).GetValue(of);
  }

  static object Call(object of, string name, params object[] arguments) {
    return of.GetType().GetMethods(Any).First(method => method.Name == name && method.GetParameters().Length == arguments.Length).Invoke(of, arguments);
  }

  static string Quoted(string text) { return '"' + text.Replace("\\", "\\\\").Replace("\"", "\\\"") + '"'; }

  public static void Main(string[] args) {
    Func<string, string> library = name => Path.Combine(args[0], name + ".dll");
    AppDomain.CurrentDomain.AssemblyResolve += (sender, missing) => {
      string file = library(new AssemblyName(missing.Name).Name);
      return File.Exists(file) ? Assembly.LoadFrom(file) : null;
    };
    var type = Assembly.LoadFrom(library("Microsoft.Diagnostics.Monitoring.EventPipe")).GetType("GCHeapDump");
    object graph = Get(type.GetConstructor(Any, null, new[] { typeof(string) }, null).Invoke(new object[] { args[1] }), "MemoryGraph");
    object storage = Call(graph, "AllocTypeNodeStorage");
    var types = new List<string>();
    foreach (object row in (IEnumerable)Call(graph, "GetHistogramByType")) {
      string name = (string)Get(Call(graph, "GetType", Get(row, "TypeIdx"), storage), "Name");
      types.Add("[" + Quoted(name) + "," + Get(row, "Count") + "," + Get(row, "Size") + "]");
    }
    Console.WriteLine("{\"bytes\":" + Get(graph, "TotalSize") + ",\"types\":[" + string.Join(",", types) + "]}");
  }
}
